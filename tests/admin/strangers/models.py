"""The user model of that project."""

from __future__ import annotations

import uuid

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models


class Stranger(AbstractBaseUser, PermissionsMixin):
    key = models.UUIDField(primary_key=True, default=uuid.uuid4)
    badge = models.CharField(max_length=20, unique=True)
    is_active = models.BooleanField(default=True)
    is_staff = True

    objects = BaseUserManager["Stranger"]()

    USERNAME_FIELD = "badge"

    def __str__(self) -> str:
        return f"badge {self.badge}"
