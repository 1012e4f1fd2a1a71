"""The tests' project with tasks that misbehave, and options and a sink from the environment."""

from __future__ import annotations

import json
import os
from datetime import timedelta

from tests.runtime.process_settings import *  # noqa: F403
from tests.runtime.process_settings import SCHEDULED_TASKS

_NEVER_TODAY = "0 0 29 2 *"
_DELAY = timedelta(minutes=5)

SCHEDULED_TASKS = [
    *SCHEDULED_TASKS,
    *(
        (name.replace("_", "-"), _NEVER_TODAY, f"tests.processes.callbacks.{name}", _DELAY)
        for name in (
            *("hold_the_lock", "close_the_pipe", "leave_a_child", "exit_at_once"),
            *("raise_system_exit", "raise_keyboard_interrupt", "break_a_few_passes"),
            *("break_the_loop", "break_the_heartbeat", "break_the_watch_for_signals"),
        )
    ),
]
SCHEDULED_TASKS += [
    {
        "name": f"{name.replace('_', '-')}-{runner}",
        "cron": _NEVER_TODAY,
        "callback": f"tests.processes.callbacks.{name}",
        "runner": runner,
    }
    for name in ("make_pools", "end_children", "show_descriptors_of_a_child", "leave_a_worker")
    for runner in ("thread", "process")
]
DECLARATIVE_CRON = json.loads(os.environ.get("DDC_TEST_OPTIONS", '{"LEASE": 2, "RENEW": 0.5}'))
if sink := os.environ.get("DDC_TEST_SINK"):
    timeout = float(os.environ["DDC_TEST_SINK_TIMEOUT"])
    DECLARATIVE_CRON["EVENT_SINK"] = {
        "url": sink,
        "secret": "whsec_" + "a" * 32,
        "timeout": timeout,
    }
    SILENCED_SYSTEM_CHECKS = ["declarative_cron.W050"]

if os.environ.get("DDC_TEST_SHIM"):
    # Only where ``manage_with_shim.py`` was run.
    import shim_of_manage_py  # type: ignore[import-not-found]  # noqa: F401
