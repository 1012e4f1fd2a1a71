"""The management commands; Django discovers the modules of this package."""
