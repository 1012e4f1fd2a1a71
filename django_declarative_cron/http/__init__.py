"""The HTTP binding of Open Job Spec (002 Registration, Listing, and Removal); optional.

A project includes its URLs at ``ojs/``::

    path("ojs/", include("django_declarative_cron.http.urls"))

Each request needs an access token, or a user with the permissions.
"""
