"""Whatever is declared: a result or an error of ours, and both readings agree."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, NoReturn

import pytest
from django.core.checks import CheckMessage, run_checks
from django.utils.functional import SimpleLazyObject, lazystr
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from django_declarative_cron import checks, conf
from django_declarative_cron.core.declarations.keys import KEYS, MANAGED
from django_declarative_cron.core.declarations.options import JOB_OPTIONS
from django_declarative_cron.core.event_sink import _READERS as SINK_KEYS
from django_declarative_cron.core.options import OPTIONS
from django_declarative_cron.core.retry import POLICY_KEYS as RETRY_KEYS
from django_declarative_cron.exceptions import DeclarativeCronError

from ..callables import jobs
from .conftest import entry

pytestmark = pytest.mark.usefixtures("still_clock")

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.binary(max_size=3),
    st.timedeltas(),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3),
    ),
    max_leaves=6,
)
NAMES = st.one_of(st.sampled_from(["a", "b", "c"]), st.text(max_size=4), SCALARS)
CRONS = st.one_of(
    st.sampled_from(["* * * * *", "0 7 * * 1-5", "*/5 * * * *", "@daily", "0 0 30 2 *"]), SCALARS
)
CALLBACKS = st.one_of(
    st.sampled_from([jobs.send_mail, "tests.callables.jobs.send_mail", "tests.callables.jbos.x"]),
    SCALARS,
)
DELAYS = st.one_of(st.timedeltas(), st.just(timedelta(minutes=5)), SCALARS)
TUPLES = st.tuples(NAMES, CRONS, CALLBACKS, DELAYS)
WORDS = st.sampled_from(
    ["posix", "ojs", "skip", "shift", "both", "thread", "coalesce", "UTC", "Europe/Berlin", "EST"]
)
ENTRIES = st.fixed_dictionaries(
    {"name": NAMES, "cron": CRONS},
    optional={
        "callback": CALLBACKS,
        "retry_delay": DELAYS,
        **{
            key: st.one_of(WORDS, ANYTHING)
            for key in (*KEYS, *MANAGED)
            if key not in ("name", "cron", "callback", "type", "command", "retry_delay")
        },
    },
)
LISTS = st.one_of(ANYTHING, st.lists(st.one_of(TUPLES, ENTRIES, ANYTHING), max_size=4))


@pytest.mark.requirement(
    "003 Input Validation/1", "004 Domains & Data Types/1", "004 Safety Axioms/3"
)
@given(LISTS)
def test_any_input_is_understood_or_refused(registrations: Any) -> None:
    errors = [found for found in conf.problems(registrations) if found.error is not None]
    try:
        declared = conf.declarations(registrations)
    except DeclarativeCronError as error:
        first = errors[0].error
        assert first is not None
        assert (type(first), first.message) == (type(error), error.message)
    else:
        assert errors == []
        assert len(declared) == len(registrations)
        assert all(json.dumps(each.as_data(), allow_nan=False) for each in declared)


# --- numbers of any size ---


# One that is no float, and one that Python does not even write.
HUGE = [10**400, -(10**400), 10**5000, -(10**5000)]


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
        assert errors(settings, {}, entry(**{key: number})), key
    for key in JOB_OPTIONS:
        assert errors(settings, {}, entry(options={key: number})), key
    for key in RETRY_KEYS:
        assert errors(settings, {}, entry(options={"retry": {key: number}})), key


@pytest.mark.parametrize("number", HUGE, ids=["wide", "-wide", "unwritable", "-unwritable"])
def test_a_huge_number_is_an_error_where_data_or_a_key_is_expected(
    settings: Any, number: int
) -> None:
    assert len(errors(settings, {number: 1})) == 1
    assert len(errors(settings, {"EVENT_SINK": {number: 1}})) == 1
    assert len(errors(settings, {}, dict[Any, Any](entry()) | {number: 1})) == 1
    assert len(errors(settings, {}, entry(args=[number]))) == 1
    for options in ({number: 1}, {"retry": {number: 1}}, {"meta": {"a": number}}):
        assert len(errors(settings, {}, entry(options=options))) == 1


# --- lazy values ---


KINDS = [gettext_lazy, lazystr, lambda text: SimpleLazyObject(lambda: text)]
TEXTS = {
    **entry(),
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
    assert checked(settings, [entry(**{key: make(TEXTS[key])})]) == []
    (read,) = conf.declarations([entry(**{key: make(TEXTS[key])})])
    assert read == conf.declarations([entry(**{key: TEXTS[key]})])[0]


@pytest.mark.parametrize("key", [*TEXTS, "spread", "enabled", "options", "args", "timeout"])
def test_a_lazy_value_that_raises_is_refused_with_its_place(settings: Any, key: str) -> None:
    found = checked(settings, [entry(**{key: SimpleLazyObject(fail)})])
    assert found
    assert all(str(each.obj).startswith("SCHEDULED_TASKS[0]") for each in found)


def test_lazy_values_of_other_kinds_are_evaluated(settings: Any) -> None:
    delay = SimpleLazyObject(lambda: timedelta(minutes=5))
    whole = ("a", lazystr("0 7 * * *"), jobs.send_mail, delay)
    assert checked(settings, [whole, SimpleLazyObject(lambda: entry(name="u"))]) == []
    assert checked(settings, SimpleLazyObject(lambda: [entry()])) == []
    assert checked(settings, [entry(options={lazystr("queue"): lazystr("q")})]) == []


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
    given: list[Any] = [entry(), ("a", [1])]
    assert conf.evaluated(given) is given
    given.append(given)
    assert conf.evaluated(given) is given
