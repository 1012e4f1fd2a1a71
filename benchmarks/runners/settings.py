"""The project of the processes that a runner starts: the app, and no database."""

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_declarative_cron",
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
SECRET_KEY = "for benchmarks only"
USE_TZ = True
