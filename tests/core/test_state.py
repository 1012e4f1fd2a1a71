"""A task's state as a value: what changes it makes another one."""

from __future__ import annotations

import ast
import inspect
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime

import pytest

from django_declarative_cron.core.state import TaskState, fold

STATE = TaskState(name="a", registered_at=datetime(2026, 1, 1, tzinfo=UTC), attempt=1)


def test_a_state_with_other_values_is_another_state() -> None:
    changed = STATE.but(attempt=3, orphaned=True)
    assert changed == replace(STATE, attempt=3, orphaned=True)
    assert (STATE.attempt, STATE.orphaned) == (1, False)
    assert hash(changed) == hash(replace(STATE, attempt=3, orphaned=True))
    with pytest.raises(FrozenInstanceError):
        changed.attempt = 4  # type: ignore[misc]


def test_what_the_fold_changes_are_fields_of_the_state() -> None:
    # Neither the type checker nor ``but`` looks at the names.
    calls = [
        call
        for call in ast.walk(ast.parse(inspect.getsource(fold)))
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "but"
    ]
    names = {field.name for field in fields(TaskState)}
    assert len(calls) > 15
    assert {keyword.arg for call in calls for keyword in call.keywords} <= names
