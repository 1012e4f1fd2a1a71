"""Declarations: from the settings to values, one item after the other."""
