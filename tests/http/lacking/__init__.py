"""An app whose tasks module cannot be imported."""
