"""URLs of a project that includes the metrics, as the page on monitoring shows."""

from __future__ import annotations

from django.urls import path

from django_declarative_cron.http.metrics import metrics

urlpatterns = [path("metrics", metrics)]
