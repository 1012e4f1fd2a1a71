"""The HTTP binding of Open Job Spec (002 Registration, Listing, and Removal); optional.

Nothing imports it. A project includes its URLs at ``ojs/``::

    path("ojs/", include("django_declarative_cron.http.urls"))

Nobody may call until a token is created, or a user has the permissions.
"""
