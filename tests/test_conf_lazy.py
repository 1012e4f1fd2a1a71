"""Lazy values in settings are read as they are meant, or refused with their place."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NoReturn

import pytest
from django.core.checks import CheckMessage, run_checks
from django.utils.functional import SimpleLazyObject, lazystr
from django.utils.translation import gettext_lazy

from django_declarative_cron import checks, conf

pytestmark = pytest.mark.usefixtures("still_clock")

ENTRY = {"name": "t", "cron": "0 7 * * *", "callback": "tests.callables.jobs.send_mail"}
KINDS = [gettext_lazy, lazystr, lambda text: SimpleLazyObject(lambda: text)]
TEXTS = {
    **ENTRY,
    "description": "d",
    "timezone": "UTC",
    "dialect": "ojs",
    "overlap_policy": "skip",
    "runner": "thread",
    "gap": "shift",
}


def fail() -> NoReturn:
    raise RuntimeError("no answer")


def checked(settings: Any, tasks: Any, options: Any = None) -> list[CheckMessage]:
    settings.SCHEDULED_TASKS, settings.DECLARATIVE_CRON = tasks, options or {}
    return [each for each in run_checks(tags=[checks.TAG]) if each.is_serious()]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("key", ["name", "cron", "callback", "description", "timezone", "dialect"])
def test_a_lazy_text_is_read_as_its_text(settings: Any, make: Any, key: str) -> None:
    assert checked(settings, [{**ENTRY, key: make(TEXTS[key])}]) == []
    (read,) = conf.declarations([{**ENTRY, key: make(TEXTS[key])}])
    assert read == conf.declarations([{**ENTRY, key: TEXTS[key]}])[0]


@pytest.mark.parametrize("key", [*TEXTS, "spread", "enabled", "options", "args", "timeout"])
def test_a_lazy_value_that_raises_is_refused_with_its_place(settings: Any, key: str) -> None:
    found = checked(settings, [{**ENTRY, key: SimpleLazyObject(fail)}])
    assert found
    assert all(str(each.obj).startswith("SCHEDULED_TASKS[0]") for each in found)


def test_lazy_values_of_other_kinds_are_evaluated(settings: Any) -> None:
    delay = SimpleLazyObject(lambda: timedelta(minutes=5))
    whole = ("t", lazystr("0 7 * * *"), ENTRY["callback"], delay)
    assert checked(settings, [whole, SimpleLazyObject(lambda: {**ENTRY, "name": "u"})]) == []
    assert checked(settings, SimpleLazyObject(lambda: [ENTRY])) == []
    assert checked(settings, [{**ENTRY, "options": {lazystr("queue"): lazystr("q")}}]) == []


def test_options_may_be_lazy_too(settings: Any) -> None:
    given = {
        lazystr("LEASE"): SimpleLazyObject(lambda: 30),
        "DEPLOYMENT": lazystr("shop"),
        "WATCHDOG_PROCESS": SimpleLazyObject(lambda: False),
    }
    assert checked(settings, [], SimpleLazyObject(lambda: given)) == []
    found = conf.options()
    assert (timedelta(seconds=30), "shop") == (found.LEASE, found.DEPLOYMENT)
    assert found.WATCHDOG_PROCESS is False
    for key in ("LEASE", "DEPLOYMENT", "WATCHDOG_PROCESS", "NOTIFY", "CALENDARS", "EVENT_SINK"):
        (refused,) = checked(settings, [], {key: SimpleLazyObject(fail)})
        assert key in str(refused.obj)


def test_what_is_not_lazy_is_the_same_object_and_may_contain_itself() -> None:
    given: list[Any] = [ENTRY, ("a", [1])]
    assert conf.evaluated(given) is given
    given.append(given)
    assert conf.evaluated(given) is given
