"""Callbacks that tests name by their dotted path."""


def nothing() -> None:
    """Do nothing, well."""
