"""An app whose tasks module registers types."""
