"""What the specifications demand and the tests that show it; ``python -m tests.conformance``."""
