"""Numbers of any size in settings are understood or refused, and never a traceback."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron import checks
from django_declarative_cron.core.declarations.keys import KEYS
from django_declarative_cron.core.declarations.options import _READERS as JOB_OPTIONS
from django_declarative_cron.core.event_sink import _READERS as SINK_KEYS
from django_declarative_cron.core.options import OPTIONS
from django_declarative_cron.core.retry import _READERS as RETRY_KEYS

pytestmark = pytest.mark.usefixtures("still_clock")

# One that is no float, and one that Python does not even write.
HUGE = [10**400, -(10**400), 10**5000, -(10**5000)]
ENTRY = {"name": "a", "cron": "0 7 * * *", "callback": "tests.callables.jobs.send_mail"}


def errors(settings: Any, options: object, *entries: object) -> list[str]:
    settings.DECLARATIVE_CRON, settings.SCHEDULED_TASKS = options, list(entries)
    found = [*checks.check_options(), *checks.check_scheduled_tasks()]
    return [f"{each.id} {each.msg}" for each in found if each.id and ".E" in each.id]


@pytest.mark.parametrize("number", HUGE, ids=["wide", "-wide", "unwritable", "-unwritable"])
def test_a_huge_number_is_an_error_of_its_key(settings: Any, number: int) -> None:
    for key in OPTIONS:
        assert len(errors(settings, {key: number})) == 1, key
    for key in SINK_KEYS:
        sink = {"url": "https://a.example", key: number}
        assert len(errors(settings, {"EVENT_SINK": sink})) == 1, key
    for key in KEYS:
        assert errors(settings, {}, {**ENTRY, key: number}), key
    for key in JOB_OPTIONS:
        entry = {**ENTRY, "options": {key: number}}
        assert errors(settings, {}, entry), key
    for key in RETRY_KEYS:
        assert errors(settings, {}, {**ENTRY, "options": {"retry": {key: number}}}), key


@pytest.mark.parametrize("number", HUGE, ids=["wide", "-wide", "unwritable", "-unwritable"])
def test_a_huge_number_is_an_error_where_data_or_a_key_is_expected(
    settings: Any, number: int
) -> None:
    assert len(errors(settings, {number: 1})) == 1
    assert len(errors(settings, {"EVENT_SINK": {number: 1}})) == 1
    assert len(errors(settings, {}, {**ENTRY, number: 1})) == 1
    assert len(errors(settings, {}, {**ENTRY, "args": [number]})) == 1
    for options in ({number: 1}, {"retry": {number: 1}}, {"meta": {"a": number}}):
        assert len(errors(settings, {}, {**ENTRY, "options": options})) == 1


@pytest.mark.parametrize("key", ["LEASE", "RENEW", "DEAD_AFTER", "GRACE", "VISIBILITY_TIMEOUT"])
def test_durations_beyond_every_calendar_are_refused(settings: Any, key: str) -> None:
    (error, *_) = errors(settings, {key: timedelta.max})
    assert error.startswith("declarative_cron.E022 must be from ")
    assert error.endswith(" s to 36500 days, not 999999999 days")


def test_counts_are_at_most_what_a_database_counts(settings: Any) -> None:
    assert errors(settings, {"HISTORY_MAX_RUNS": 2**31 - 1}) == []
    assert errors(settings, {"HISTORY_MAX_RUNS": 2**31}) == [
        "declarative_cron.E022 must be a whole number from 1 to 2147483647, not 2147483648"
    ]
