"""An app with tables in each schema."""
