"""A project of django-tenants whose tasks work for one tenant after the other."""
