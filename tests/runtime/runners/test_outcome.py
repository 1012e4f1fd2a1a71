"""What a run returns and logs is kept within limits, and what is not kept is said."""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any

import pytest

from django_declarative_cron.core.declarations.declaration import Target
from django_declarative_cron.runtime import context
from django_declarative_cron.runtime.context import Tail
from django_declarative_cron.runtime.outcome import ERROR_LENGTH, VALUE_LENGTH, failed, succeeded
from django_declarative_cron.runtime.work import Run, Work

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def work() -> Work:
    run = Run("t", NOW, NOW, 1, "due", "UTC", threading.Event())
    return Work(1, run, Target("", lambda: None), lambda result: None)


def kept(value: Any) -> tuple[Any, str]:
    result = succeeded(work(), NOW, value)
    return result.value, result.log


@pytest.mark.parametrize(
    "value", [None, True, 0, 1.5, "é", [], {"a": [1, {"b": None}]}, "x" * (VALUE_LENGTH - 2)]
)
def test_what_json_has_is_kept(value: Any) -> None:
    assert kept(value) == (value, "")


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, {"a": {1}}, math.nan, "\ud800", b"bytes", NOW, "x" * VALUE_LENGTH],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_kept_is_said_and_the_run_has_succeeded(value: Any) -> None:
    found, log = kept(value)
    assert found is None
    assert log.startswith("(What the callback returned is not kept: it ")


def test_a_value_of_a_kind_of_its_own_becomes_plain() -> None:
    found, log = kept(OrderedDict(a=1))
    assert (found, type(found), log) in [({"a": 1}, dict, ""), (None, type(None), log)]


def test_the_end_of_a_log_is_kept_and_a_cut_is_seen() -> None:
    lines = Tail(100)
    for number in range(50):
        lines.add(f"line {number}\n")
    text = str(lines)
    assert text.startswith("…\n")
    assert text.endswith("line 48\nline 49\n")
    assert len(text) <= 102
    lines.add("x" * 1000)
    assert str(lines) == "…\n" + "x" * 100


def test_a_line_has_a_length_too() -> None:
    taken: list[str] = []
    with context.kept(taken.append):
        logging.getLogger("tests.runtime.runners").warning("x" * (2 * context.LINE_LENGTH))
    (line,) = taken
    assert len(line) == context.LINE_LENGTH + 1


def test_the_error_of_a_run_names_no_secret_in_logs_and_to_people() -> None:
    error = RuntimeError("postgres://shop:hunter2@db/shop, password=hunter3 was refused")
    result = failed(work(), error, NOW)
    assert result.error == "RuntimeError: postgres://***@db/shop, password=*** was refused"


def test_a_long_error_keeps_its_class_its_beginning_and_its_end() -> None:
    error = failed(work(), ValueError("it began" + "x" * 10_000 + "it ended"), NOW).error
    assert error.startswith("ValueError: it beganxxx")
    assert error.endswith("xxxit ended")
    assert "xxx … xxx" in error
    assert len(error) == ERROR_LENGTH


def test_a_long_traceback_keeps_its_class_its_frames_and_its_end() -> None:
    def deep() -> None:
        raise ValueError("x" * 200_000 + "it ended")

    with pytest.raises(ValueError, match="x") as raised:
        deep()
    text = failed(work(), raised.value, NOW).traceback
    assert "in deep\n" in text
    assert "\nValueError: xxx" in text
    assert text.endswith("xxxit ended\n")


@pytest.mark.parametrize("before", range(980, 1000))
def test_a_secret_that_a_cut_goes_through_is_none(before: int) -> None:
    text = "x" * before + " password=hunter2hunter2 " + "y" * (ERROR_LENGTH - before)
    assert "unter2" not in failed(work(), RuntimeError(text), NOW).error
