"""What must hold for any bytes: refused with an error that was meant, or understood whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.test import RequestFactory

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.values import flaw_of_data
from django_declarative_cron.core.state import deserialize, serialize
from django_declarative_cron.cron import describe, parse, posix_equivalent
from django_declarative_cron.exceptions import (
    CronCalculationError,
    DeclarativeCronError,
    InvalidCronExpressionError,
    TaskTryDeserializeError,
)
from django_declarative_cron.http.parsing import read_object
from django_declarative_cron.http.responses import RefusedError

Target = Callable[[bytes], None]

_ZONE = ZoneInfo("America/New_York")
_INSTANTS = [
    datetime(2026, 10, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2027, 3, 14, 6, 30, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
]


def expression(dialect: str, data: bytes) -> None:
    """Parse a text of a dialect; what is refused has words, and maybe a proposal."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        parsed = parse(text, dialect)
    except InvalidCronExpressionError as error:
        assert error.message and error.details["reason"]
        posix_equivalent(text)
        return
    _is_sound(parsed)


def _is_sound(parsed: Any) -> None:
    describe(parsed, "en")
    for instant in _INSTANTS:
        anchor = _INSTANTS[-1]
        with suppress(CronCalculationError):
            following = parsed.next_after(instant, _ZONE, anchor=anchor)
            if following is None:
                continue
            assert following > instant
            assert parsed.latest_at_or_before(following, _ZONE, anchor=anchor) == following
            again = parsed.next_after(following, _ZONE, anchor=anchor)
            assert again is None or again > following


def entry(data: bytes) -> None:
    """Read a declaration; without a problem it is understood, with one it is refused."""
    found = _json(data)
    problems = conf.problems([found])
    assert all(problem.message for problem in problems)
    refused = any(problem.check.level == "E" for problem in problems)
    try:
        (declaration,) = conf.declarations([found])
    except DeclarativeCronError as error:
        assert refused, error
        return
    assert not refused, problems
    json.dumps(declaration.as_data())


def posted(data: bytes) -> None:
    """Read a body as the HTTP binding does, and a task out of it."""
    request = RequestFactory().post("/ojs/v1/cron", data, content_type="application/json")
    try:
        body = read_object(request)
    except RefusedError as refused:
        assert 400 <= refused.status < 500
        return
    assert flaw_of_data(body) is None
    declaration, problems = conf.posted(body)
    assert (declaration is None) == any(problem.check.level == "E" for problem in problems)


def row(data: bytes) -> None:
    """Read a stored state: what was damaged is said, what was not is the same afterwards."""
    found = _json(data)
    try:
        state = deserialize(found, ["a"])
    except TaskTryDeserializeError as error:
        assert error.message
        return
    again = serialize(state)
    assert serialize(deserialize(again, ["a"])) == again


def _json(data: bytes) -> Any:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")
    # What JSON cannot say, settings can.
    return _with_durations(found)


def _with_durations(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_durations(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_durations(each) for each in value]
    if isinstance(value, str) and value.startswith("seconds:"):
        with suppress(ValueError, OverflowError):
            return timedelta(seconds=float(value.removeprefix("seconds:")))
    return value


TARGETS: Final[dict[str, Target]] = {
    "posix": partial(expression, "posix"),
    "ojs": partial(expression, "ojs"),
    "entry": entry,
    "posted": posted,
    "row": row,
}
