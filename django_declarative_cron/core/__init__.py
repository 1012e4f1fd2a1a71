"""What a scheduler decides, without Django, a clock, or any input and output."""
