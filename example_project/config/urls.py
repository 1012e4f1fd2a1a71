"""The admin, and a front door that leads there."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

admin.site.site_header = admin.site.site_title = "The corner shop"
admin.site.index_title = "Shop and scheduled tasks"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
]
