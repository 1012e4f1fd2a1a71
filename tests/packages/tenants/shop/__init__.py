"""The app of the tenants."""
