"""A task's state as a value: what changes it makes another one."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime

import pytest

from django_declarative_cron.core.state import TaskState

STATE = TaskState(name="a", registered_at=datetime(2026, 1, 1, tzinfo=UTC), attempt=1)


def test_a_state_with_other_values_is_another_state() -> None:
    changed = replace(STATE, attempt=3, orphaned=True)
    assert (STATE.attempt, STATE.orphaned) == (1, False)
    assert hash(changed) == hash(replace(STATE, attempt=3, orphaned=True))
    with pytest.raises(FrozenInstanceError):
        changed.attempt = 4  # type: ignore[misc]
