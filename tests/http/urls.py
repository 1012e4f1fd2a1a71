"""URLs of a project that includes the binding."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("ojs/", include("django_declarative_cron.http.urls"))]
