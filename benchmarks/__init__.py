"""Benchmarks of the scheduler beside its peers: ``python -m benchmarks [NAME …]``."""
