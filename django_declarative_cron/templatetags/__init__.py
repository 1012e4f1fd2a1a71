"""What our templates load."""
