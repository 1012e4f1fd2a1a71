"""Items that differ in their names share what was understood of them, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron import conf
from django_declarative_cron.core.alike import key_of
from django_declarative_cron.exceptions import (
    DeclarativeCronError,
    InvalidRegistrationError,
    ScheduleDuplicateTaskError,
)

FIVE = timedelta(minutes=5)


def work() -> None:
    """Do nothing."""


def other() -> None:
    """Do nothing else."""


def entry(name: str, **said: Any) -> dict[str, Any]:
    return {"name": name, "cron": "0 7 * * *", "callback": work, **said}


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


@pytest.mark.parametrize(
    ("one", "other_"),
    [
        ({"cron": "0 7 * * *"}, {"cron": "0 8 * * *"}),
        ({"callback": work}, {"callback": other}),
        ({"args": [1]}, {"args": [True]}),
        ({"args": [1]}, {"args": [1.0]}),
        ({"options": {"meta": {"n": 0}}}, {"options": {"meta": {"n": False}}}),
        ({"enabled": False}, {}),
        ({"catch_up": 60}, {"catch_up": timedelta(minutes=1)}),
    ],
)
def test_what_differs_in_more_is_told_apart(one: dict[str, Any], other_: dict[str, Any]) -> None:
    first, second = conf.declarations([entry("a", **one), entry("b", **other_)])
    assert key_of(entry("a", **one)) != key_of(entry("b", **other_))
    assert first.terms is not second.terms
    assert [first.terms.as_data(), second.terms.as_data()] == [
        conf.declarations([entry("x", **said)])[0].terms.as_data() for said in (one, other_)
    ]


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


def test_data_that_contains_itself_is_refused_as_ever() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidRegistrationError):
        conf.declarations([entry("a", args=endless)])
