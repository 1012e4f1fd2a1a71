"""Each item is read whole, and the items beside it change nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import Declaration
from django_declarative_cron.core.declarations.problems import Check
from django_declarative_cron.core.lint import advise
from django_declarative_cron.cron import ojs, parsing, posix
from django_declarative_cron.exceptions import (
    DeclarativeCronError,
)

FIVE = timedelta(minutes=5)
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def work() -> None:
    """Do nothing."""


def other() -> None:
    """Do nothing else."""


def entry(name: str, **said: Any) -> dict[str, Any]:
    return {"name": name, "cron": "0 7 * * *", "callback": work, **said}


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
    ],
)
def test_equal_data_of_other_types_has_a_digest_of_its_own(
    one: dict[str, Any], other_: dict[str, Any]
) -> None:
    first, second = conf.declarations([entry("a", **one), entry("b", **other_)])
    assert first.digest != second.digest
    alone = [conf.declarations([entry("x", **said)])[0] for said in (one, other_)]
    assert [first.digest, second.digest] == [each.digest for each in alone]


def test_durations_of_one_length_have_one_digest() -> None:
    first, second = conf.declarations(
        [entry("a", catch_up_window=60), entry("b", catch_up_window=timedelta(minutes=1))]
    )
    assert first.digest == second.digest
    assert second.as_data() == {**first.as_data(), "name": "b"}


@pytest.mark.parametrize("key", ["args", "options", "monitor"])
def test_data_that_contains_itself_more_than_once_is_refused_at_once(key: str) -> None:
    data: list[Any] = []
    data += [data, data]
    mapping: dict[str, Any] = {}
    mapping |= {"a": mapping, "b": mapping}
    item = entry("a", **{key: data if key == "args" else mapping})
    item["self"] = item["again"] = item
    assert [each.task for each in conf.problems([item])].count("a") >= 1


def test_what_is_surprising_is_told_of_each_item() -> None:
    told = conf.survey([(name, "0 7 1 * 1", "operator.not_", FIVE) for name in "ab"])[0]
    found = [each for each in advise(told, NOON, None) if each.check is Check.EITHER_DAY]
    assert [(each.index, each.task) for each in found] == [(0, "a"), (1, "b")]
    assert ["'a'" in found[0].place, "'b'" in found[1].place] == [True, True]


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
SIMILAR = st.one_of(
    st.tuples(st.integers(0, 99).map("n{}".format), CRONS, st.just(work), st.just(FIVE)),
    st.builds(entry, st.integers(0, 99).map("n{}".format), cron=CRONS),
    st.builds(entry, st.integers(0, 99).map("n{}".format), cron=CRONS, dialect=st.just("posix")),
)


def found_in(items: list[Any]) -> list[Any]:
    """Return for each item its declaration, its problems and its first error, without names."""
    declared, problems = conf.survey(items)
    found: list[Any] = [[None, []] for _ in items]
    for each in declared:
        found[each.position][0] = (each.zone_is_said, said_of(each.declaration))
    for problem in problems:
        if problem.index is not None and problem.check is not Check.DUPLICATE:
            said = (problem.check, problem.message, problem.hint, problem.task)
            found[problem.index][1].append((*said, flaw_of(problem.error)))
    return found


def said_of(declaration: Declaration) -> Any:
    expression, target = declaration.schedule.expression, declaration.target
    return (
        *(declaration.as_data(), declaration.columns, declaration.schedule),
        *(expression.text, expression.remarks, expression.restricted_both),
        *(expression.hour_restricted, expression.day_restricted, expression.weekday_restricted),
        *(target.function, target.is_importable),
    )


def flaw_of(error: DeclarativeCronError | None) -> Any:
    if error is None:
        return None
    details = {key: value for key, value in error.details.items() if key != "registrationIndex"}
    known = {key: vars(error).get(key) for key in ("code", "position", "fix")}
    return type(error), error.message, details, known, type(error.__cause__)


def without_caches(monkeypatch: pytest.MonkeyPatch, items: list[Any]) -> list[Any]:
    """Read each item alone, and parse its expression anew."""
    with monkeypatch.context() as patch:
        patch.setattr(posix, "_remembered", posix.parse_field)
        patch.setattr(ojs, "_field", ojs._read)
        patch.setattr(parsing, "_parse_cached", parsing._parse)
        return [found_in([item])[0] for item in items]


@given(st.lists(st.one_of(ANYTHING, SIMILAR), max_size=12))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_item_is_read_as_if_it_were_alone(
    monkeypatch: pytest.MonkeyPatch, items: list[Any]
) -> None:
    alone = without_caches(monkeypatch, items)
    names = set[Any]()
    for item, mine, together in zip(items, alone, found_in(items), strict=True):
        name = item.get("name") if isinstance(item, dict) else item and item[0]
        is_repeated = isinstance(name, str) and name in names
        if isinstance(name, str) and Check.ITEM_SHAPE not in [problem[0] for problem in mine[1]]:
            names.add(name)
        assert together[1] == mine[1]
        assert together[0] == (None if is_repeated else mine[0])
