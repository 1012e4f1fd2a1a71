"""A table in each schema."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """An order of one tenant."""

    note = models.CharField(max_length=50)

    def __str__(self) -> str:
        return self.note
