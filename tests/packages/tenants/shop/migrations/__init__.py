"""The tables of the tenants themselves."""
