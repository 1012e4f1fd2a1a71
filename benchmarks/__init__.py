"""How fast it is: one module for each part, run as ``python -m benchmarks.<part>``."""
