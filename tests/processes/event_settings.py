"""The project of the scheduler processes, which posts its events."""

from __future__ import annotations

import os

from tests.runtime.process_settings import *  # noqa: F403
from tests.runtime.process_settings import DECLARATIVE_CRON

DECLARATIVE_CRON = {
    **DECLARATIVE_CRON,
    "EVENT_SINK": {
        "url": os.environ["DDC_TEST_SINK"],
        "secret": "whsec_" + "a" * 32,
        "timeout": float(os.environ["DDC_TEST_SINK_TIMEOUT"]),
    },
}
SILENCED_SYSTEM_CHECKS = ["declarative_cron.W050"]
