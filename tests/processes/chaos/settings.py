"""The project of the schedulers; ``plan`` says by the environment how large it is."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

from .plan import Plan

INSTALLED_APPS = ["django_declarative_cron", "tests.processes.chaos.clocks.ChaosConfig"]
MIDDLEWARE: list[str] = []
TEMPLATES: list[object] = []
ROOT_URLCONF = "tests.processes.chaos.settings"
urlpatterns: list[object] = []
USE_TZ = True

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # As the page on deploying has it for several processes on one file.
    DATABASES["default"]["OPTIONS"] = {
        "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
    }

# A pooler may give the next fetch another connection.
DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = True

_plan = Plan.from_environment()
SCHEDULED_TASKS = _plan.registrations()
DECLARATIVE_CRON = {
    "LEASE": _plan.lease,
    "RENEW": _plan.lease / 3,
    "WORKERS": 20,
    "HISTORY_MAX_RUNS": 1_000_000,
}
