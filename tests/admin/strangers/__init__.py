"""The settings of that project."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = [*INSTALLED_APPS, "tests.admin.strangers"]
AUTH_USER_MODEL = "strangers.Stranger"
