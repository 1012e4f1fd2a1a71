"""The tables of each tenant."""
