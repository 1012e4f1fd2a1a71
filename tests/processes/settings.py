"""The tests' project with tasks that misbehave, and options from the environment."""

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
        "callback": f"tests.processes.forking.{name}",
        "runner": runner,
    }
    for name in ("make_pools", "end_children", "show_descriptors_of_a_child", "leave_a_worker")
    for runner in ("thread", "process")
]
if name := os.environ.get("DDC_TEST_ANOTHER_TASK"):
    SCHEDULED_TASKS.append((name, _NEVER_TODAY, "tests.runtime.callbacks.note", _DELAY))

DECLARATIVE_CRON = json.loads(os.environ.get("DDC_TEST_OPTIONS", '{"LEASE": 2, "RENEW": 0.5}'))
