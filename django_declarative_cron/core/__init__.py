"""The decisions of a scheduler: no Django, no clock, no input or output."""
