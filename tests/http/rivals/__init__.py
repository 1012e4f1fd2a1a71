"""An app whose tasks module registers a type of another app."""
