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

from .callables import jobs

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
BARE = {"name": "a", "cron": "0 7 * * *", "callback": "tests.callables.jobs.send_mail"}


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
        assert errors(settings, {}, {**BARE, key: number}), key
    for key in JOB_OPTIONS:
        entry = {**BARE, "options": {key: number}}
        assert errors(settings, {}, entry), key
    for key in RETRY_KEYS:
        assert errors(settings, {}, {**BARE, "options": {"retry": {key: number}}}), key


@pytest.mark.parametrize("number", HUGE, ids=["wide", "-wide", "unwritable", "-unwritable"])
def test_a_huge_number_is_an_error_where_data_or_a_key_is_expected(
    settings: Any, number: int
) -> None:
    assert len(errors(settings, {number: 1})) == 1
    assert len(errors(settings, {"EVENT_SINK": {number: 1}})) == 1
    assert len(errors(settings, {}, {**BARE, number: 1})) == 1
    assert len(errors(settings, {}, {**BARE, "args": [number]})) == 1
    for options in ({number: 1}, {"retry": {number: 1}}, {"meta": {"a": number}}):
        assert len(errors(settings, {}, {**BARE, "options": options})) == 1


@pytest.mark.parametrize("key", ["LEASE", "RENEW", "DEAD_AFTER", "GRACE", "VISIBILITY_TIMEOUT"])
def test_durations_beyond_every_calendar_are_refused(settings: Any, key: str) -> None:
    (error, *_) = errors(settings, {key: timedelta.max})
    assert error.startswith("declarative_cron.E022 must be from ")
    assert error.endswith(" to 36500 d, not 999999999 d 23 h 59 min 59 s")


def test_counts_are_at_most_what_a_database_counts(settings: Any) -> None:
    assert errors(settings, {"HISTORY_MAX_RUNS": 2**31 - 1}) == []
    assert errors(settings, {"HISTORY_MAX_RUNS": 2**31}) == [
        "declarative_cron.E022 must be a whole number from 1 to 2147483647, not 2147483648"
    ]


# --- lazy values ---


KINDS = [gettext_lazy, lazystr, lambda text: SimpleLazyObject(lambda: text)]
TEXTS = {
    **BARE,
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
    assert checked(settings, [{**BARE, key: make(TEXTS[key])}]) == []
    (read,) = conf.declarations([{**BARE, key: make(TEXTS[key])}])
    assert read == conf.declarations([{**BARE, key: TEXTS[key]}])[0]


@pytest.mark.parametrize("key", [*TEXTS, "spread", "enabled", "options", "args", "timeout"])
def test_a_lazy_value_that_raises_is_refused_with_its_place(settings: Any, key: str) -> None:
    found = checked(settings, [{**BARE, key: SimpleLazyObject(fail)}])
    assert found
    assert all(str(each.obj).startswith("SCHEDULED_TASKS[0]") for each in found)


def test_lazy_values_of_other_kinds_are_evaluated(settings: Any) -> None:
    delay = SimpleLazyObject(lambda: timedelta(minutes=5))
    whole = ("a", lazystr("0 7 * * *"), BARE["callback"], delay)
    assert checked(settings, [whole, SimpleLazyObject(lambda: {**BARE, "name": "u"})]) == []
    assert checked(settings, SimpleLazyObject(lambda: [BARE])) == []
    assert checked(settings, [{**BARE, "options": {lazystr("queue"): lazystr("q")}}]) == []


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
    given: list[Any] = [BARE, ("a", [1])]
    assert conf.evaluated(given) is given
    given.append(given)
    assert conf.evaluated(given) is given


# --- habits of other schedulers, and swapped values ---


MAIL = "tests.callables.jobs.send_mail"
COMPLETE = {"name": "a", "cron": "0 7 * * *", "timezone": "UTC", "callback": MAIL}


class Crontab:
    """The attributes in which Celery keeps what was written."""

    _orig_minute, _orig_hour = "*/15", 7
    _orig_day_of_month = _orig_month_of_year = "*"
    _orig_day_of_week = "mon-fri"


def hints(entry: object) -> list[str]:
    return [each.hint for each in conf.problems([entry]) if each.check.level == "E"]


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"schedule": Crontab()}, 'Write "cron": "*/15 7 * * mon-fri".'),
        ({"cron": Crontab()}, 'Write "cron": "*/15 7 * * mon-fri".'),
        ({"schedule": timedelta(minutes=2)}, 'Write "cron": "@every 120s".'),
        ({"schedule": 30.0}, 'Write "cron": "0 7 * * *".'),
        ({"task": "shop.tasks.send"}, 'Write "callback": "app.module.function".'),
        ({"name": "0 7 * * *", "cron": "a"}, 'the name is "a", the expression "0 7 * * *".'),
    ],
)
def test_an_entry_of_another_habit_says_what_to_write(change: dict[str, Any], hint: str) -> None:
    found = hints({**COMPLETE, **change})
    assert any(each.endswith(hint) for each in found), found


def test_a_tuple_with_name_and_expression_swapped_says_so() -> None:
    (hint,) = hints(("0 7 * * *", "daily", MAIL, timedelta(0)))
    assert hint == 'Swap them: the name is "daily", the expression "0 7 * * *".'


def test_a_timeout_is_a_timedelta_too() -> None:
    (declaration,) = conf.declarations([{**COMPLETE, "options": {"timeout": timedelta(minutes=5)}}])
    assert declaration.timeout == timedelta(minutes=5)
    (same,) = conf.declarations([{**COMPLETE, "options": {"timeout": 300.0}}])
    assert declaration.digest == same.digest
    (problem,) = conf.problems([{**COMPLETE, "options": {"timeout": timedelta(0)}}])
    assert "must be from 1 ms to 365 d, not 0 s" in problem.message


@pytest.mark.parametrize("name", ["GMT", "EST", "Zulu"])
def test_a_zone_without_continent_is_refused_and_not_called_unknown(name: str) -> None:
    (problem,) = conf.problems([{**COMPLETE, "timezone": name}])
    assert "is refused: only IANA names with a continent, and UTC, are accepted" in problem.message


def test_a_sink_without_address_says_what_to_write(settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"EVENT_SINK": {"secret": "whsec_" + "a" * 32}}
    (problem,) = conf.option_problems()
    assert problem.hint.startswith('Write {"url": "https://')
