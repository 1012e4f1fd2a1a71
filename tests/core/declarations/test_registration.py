"""Items that differ in their names share what was understood of them, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from operator import not_
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_declarative_cron import conf
from django_declarative_cron.core.declarations import registration
from django_declarative_cron.core.declarations.declaration import Declaration
from django_declarative_cron.core.declarations.item import Check
from django_declarative_cron.core.declarations.registration import parts_of
from django_declarative_cron.core.lint import advise
from django_declarative_cron.cron import ojs, parsing, posix
from django_declarative_cron.exceptions import (
    DeclarativeCronError,
    InvalidRegistrationError,
    ScheduleDuplicateTaskError,
)

FIVE = timedelta(minutes=5)
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def work() -> None:
    """Do nothing."""


def other() -> None:
    """Do nothing else."""


def entry(name: str, **said: Any) -> dict[str, Any]:
    return {"name": name, "cron": "0 7 * * *", "callback": work, **said}


def beside_its_name(item: Any) -> tuple[Any, ...]:
    parts = parts_of(item)
    assert parts is not None
    return parts[1:]


def test_what_differs_in_the_name_only_has_the_same_terms() -> None:
    one, two, third = conf.declarations(
        [("a", "0 7 * * *", work, FIVE), ("b", "0 7 * * *", work, FIVE), entry("c")]
    )
    assert one.terms is two.terms
    assert third.terms is not one.terms
    assert (one.name, two.name, third.name) == ("a", "b", "c")
    first, second = conf.declarations(
        [entry(name, options={"tags": ["x"], "meta": {"n": [1]}}) for name in "ab"]
    )
    assert first.terms is second.terms
    assert second.as_data() == {**first.as_data(), "name": "b"}


def test_what_differs_in_the_expression_too_shares_the_rest() -> None:
    crons = ("0 7 * * *", "0 8 * * *", "0 7 * * *", "0  8 * * *")
    read = conf.declarations(
        [(name, cron, work, FIVE) for name, cron in zip("abcd", crons, strict=True)]
    )
    assert len({id(each.terms.manner) for each in read}) == 1
    assert [each.cron for each in read] == list(crons)
    assert [each.schedule.expression.text for each in read] == list(crons)
    assert read[0].terms is read[2].terms
    assert len({each.digest() for each in read}) == 3
    said = {"options": {"tags": ["x"]}, "timezone": "Asia/Tokyo", "gap": "shift", "fold": "both"}
    some = [entry(f"e{place}", **{**said, "cron": cron}) for place, cron in enumerate(crons)]
    assert [each.as_data() for each in conf.declarations(some)] == [
        conf.declarations([one])[0].as_data() for one in some
    ]


@pytest.mark.parametrize(
    ("one", "other_"),
    [
        ({"cron": "0 7 * * *"}, {"cron": "0 8 * * *"}),
        ({"callback": work}, {"callback": other}),
        ({"args": [1]}, {"args": [True]}),
        ({"args": [1]}, {"args": [1.0]}),
        ({"args": [0.0]}, {"args": [-0.0]}),
        ({"options": {"meta": {"n": 0}}}, {"options": {"meta": {"n": False}}}),
        ({"options": {"meta": {"n": []}}}, {"options": {"meta": {"n": {}}}}),
        ({"enabled": True}, {"atomic": True}),
        ({"enabled": False}, {}),
        ({"catch_up_window": 60}, {"catch_up_window": timedelta(minutes=1)}),
    ],
)
def test_what_differs_in_more_is_told_apart(one: dict[str, Any], other_: dict[str, Any]) -> None:
    first, second = conf.declarations([entry("a", **one), entry("b", **other_)])
    assert beside_its_name(entry("a", **one)) != beside_its_name(entry("b", **other_))
    assert first.terms is not second.terms
    # Of data that is equal and not the same, only the digests are different.
    alone = [conf.declarations([entry("x", **said)])[0] for said in (one, other_)]
    assert [first.terms.as_data(), second.terms.as_data()] == [d.terms.as_data() for d in alone]
    assert [first.digest(), second.digest()] == [d.digest() for d in alone]


@pytest.mark.parametrize("key", ["args", "options", "monitor"])
def test_data_that_contains_itself_more_than_once_is_refused_at_once(key: str) -> None:
    data: list[Any] = []
    data += [data, data]
    mapping: dict[str, Any] = {}
    mapping |= {"a": mapping, "b": mapping}
    item = entry("a", **{key: data if key == "args" else mapping})
    item["self"] = item["again"] = item
    assert parts_of(item) is None
    assert [each.task for each in conf.problems([item])].count("a") >= 1


def test_four_parts_that_differ_in_more_are_told_apart() -> None:
    more: list[Any] = [(work, FIVE), (other, FIVE), (work, 2 * FIVE), ("operator.not_", FIVE)]
    declared = conf.declarations(
        [(f"t{place}", "0 7 * * *", *said) for place, said in enumerate(more)]
    )
    assert len({id(each.terms.manner) for each in declared}) == 4
    assert [each.target.function for each in declared] == [work, other, work, not_]
    assert [each.retry_delay for each in declared] == [FIVE, FIVE, 2 * FIVE, FIVE]


def test_a_spread_is_of_each_name() -> None:
    names = [f"a{number}" for number in range(9)]
    declared = conf.declarations([entry(name, spread=3600) for name in names])
    assert len({each.schedule.offset for each in declared}) > 1


@pytest.mark.parametrize(
    ("second", "error"),
    [
        (("a", "0 7 * * *", work, FIVE), ScheduleDuplicateTaskError),
        (("", "0 7 * * *", work, FIVE), InvalidRegistrationError),
        (("x" * 256, "0 7 * * *", work, FIVE), InvalidRegistrationError),
        (("a\nb", "0 7 * * *", work, FIVE), InvalidRegistrationError),
        ((7, "0 7 * * *", work, FIVE), DeclarativeCronError),
    ],
)
def test_a_name_is_judged_each_time(second: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as refused:
        conf.declarations([("a", "0 7 * * *", work, FIVE), second])
    assert "registrations[1]" in str(refused.value.__notes__)


def test_a_name_of_an_entry_is_judged_as_that_of_an_entry() -> None:
    with pytest.raises(InvalidRegistrationError):
        conf.declarations([entry("a"), entry("Not So")])


def test_what_is_remarkable_is_told_of_each_item() -> None:
    told = conf.problems(
        [{**entry(name, last_run_at=None), "callback": "operator.not_"} for name in "ab"]
    )
    assert [(each.index, each.task) for each in told] == [(0, "a"), (1, "b")]
    refused = conf.problems([entry(name, cron="61 * * * *") for name in "ab"])
    assert {each.task for each in refused} == {"a", "b"}


def test_what_is_surprising_is_told_of_each_item() -> None:
    told = conf.survey([(name, "0 7 1 * 1", "operator.not_", FIVE) for name in "ab"])[0]
    found = [each for each in advise(told, NOON, None) if each.check is Check.EITHER_DAY]
    assert [(each.index, each.task) for each in found] == [(0, "a"), (1, "b")]
    assert ["'a'" in found[0].place, "'b'" in found[1].place] == [True, True]


def test_data_that_contains_itself_is_refused_as_ever() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidRegistrationError):
        conf.declarations([entry("a", args=endless)])


class Shouting(str):
    """A text of another type."""


NAMES = st.sampled_from(["a", "b", "c", "d-1", "e.2", "Not So", "", "a\nb", "ä", 7, Shouting("s")])
CRONS = st.sampled_from(
    [
        *("0 7 * * *", "0 8 * * *", "5 0 7 * * *", "0 7 1 1,2 *", "*/15 9-17 * * MON-FRI"),
        *("0 0 30 2 *", "0 0 31 4 *", "61 * * * *", "0 7 * * 8", "0 7 * *", "@daily", "@every 1h"),
        *("* * * * * */7", "0 7 L * *", "0 7 * * 5/2", "0 7 * * FRI-MON", "1-5,7,61 * * * *"),
        *("0 7 * * *\n", "", "0 7 * * * Europe/Berlin", " 0 7 * * *", "0-0/70 * * * *"),
        *(None, 5, Shouting("0 7 * * *"), "0 7 * * 7", "0 7 32 * *", "0 7 * feb *", "0 7 * foo *"),
    ]
)
CALLBACKS = st.sampled_from(
    [work, other, "operator.not_", "operator.nothing", "operator", print, 5]
)
SAID = st.fixed_dictionaries(
    {},
    optional={
        "retry_delay": st.sampled_from([FIVE, -FIVE, 300]),
        "timezone": st.sampled_from(["UTC", "Asia/Tokyo", "Asia/Tokio"]),
        "dialect": st.sampled_from(["ojs", "posix", "quartz"]),
        "gap": st.sampled_from(["shift", "jump"]),
        "args": st.sampled_from([[1], [True], [1.0], [{1}]]),
        "enabled": st.sampled_from([True, False, 1]),
        "spread": st.sampled_from([0, 3600]),
        "options": st.sampled_from([{}, {"tags": ["x"]}, {"tags": "x"}, {"meta": {"n": 0}}]),
        "last_run_at": st.none(),
        "kron": st.just("0 7 * * *"),
    },
)
ANYTHING = st.one_of(
    st.tuples(NAMES, CRONS, CALLBACKS, st.sampled_from([FIVE, timedelta(0), -FIVE, 300, [300]])),
    st.builds(
        lambda name, cron, callback, said: {"name": name, "cron": cron, **callback, **said},
        NAMES,
        CRONS,
        st.one_of(st.builds(lambda given: {"callback": given}, CALLBACKS), st.just({})),
        SAID,
    ),
    st.sampled_from([("a", "0 7 * * *", work), None, "a", ["a", "0 7 * * *", work, FIVE]]),
)
# So that there is something to be shared: the same but for the name and the expression.
MUCH_ALIKE = st.one_of(
    st.tuples(st.integers(0, 99).map("n{}".format), CRONS, st.just(work), st.just(FIVE)),
    st.builds(entry, st.integers(0, 99).map("n{}".format), cron=CRONS),
    st.builds(entry, st.integers(0, 99).map("n{}".format), cron=CRONS, dialect=st.just("posix")),
)


def in_full(monkeypatch: pytest.MonkeyPatch, items: list[Any]) -> Any:
    """Read with nothing shared and nothing remembered."""
    with monkeypatch.context() as patch:
        patch.setattr(registration, "parts_of", lambda given: None)
        patch.setattr(posix, "_READ", posix._READ_ANEW)
        patch.setattr(ojs, "_field", ojs._read)
        patch.setattr(parsing, "_parse_cached", parsing._parse)
        return told(items)


def told(items: list[Any]) -> Any:
    """Give all that reading a list finds, and what it ends with when it is to end at once."""
    declared, problems = conf.survey(items)
    try:
        first = [said_of(each) for each in conf.declarations(items)]
    except DeclarativeCronError as error:
        first = [flaw_of(error), *error.__notes__]
    read = [
        (each.place, each.position, each.source, each.zone_is_said, said_of(each.declaration))
        for each in declared
    ]
    found = [
        (each.check, each.place, each.message, each.hint, each.index, each.task, flaw)
        for each, flaw in [(each, flaw_of(each.error)) for each in problems]
    ]
    return read, found, first


def said_of(declaration: Declaration) -> Any:
    expression, target = declaration.schedule.expression, declaration.target
    return (
        *(declaration.as_data(), declaration.digest(), declaration.terms.row()),
        *(declaration.schedule, expression.text, expression.remarks, expression.restricted_both),
        *(expression.hour_restricted, expression.day_restricted, expression.weekday_restricted),
        *(target.function, target.is_importable, list(declaration.schedule.anchored(NOON)._asked)),
    )


def flaw_of(error: DeclarativeCronError | None) -> Any:
    if error is None:
        return None
    known = {key: vars(error).get(key) for key in ("code", "position", "fix")}
    return type(error), error.message, error.details, known, type(error.__cause__)


@given(st.lists(ANYTHING, max_size=8), st.lists(MUCH_ALIKE, max_size=16), st.randoms())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_shared_is_what_a_full_reading_finds(
    monkeypatch: pytest.MonkeyPatch, some: list[Any], more: list[Any], random: Random
) -> None:
    items = [*some, *more]
    random.shuffle(items)
    assert told(items) == in_full(monkeypatch, items)
