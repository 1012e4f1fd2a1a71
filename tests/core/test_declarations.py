"""A set whose declarations are put together when somebody asks: it says what each of them says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from operator import not_
from typing import Any

import pytest

from django_declarative_cron import conf
from django_declarative_cron.core import declarations as module
from django_declarative_cron.core.declarations import ByName, Declarations, digest_of_set
from django_declarative_cron.exceptions import (
    CronExpressionInvalidError,
    DeclarativeCronError,
    ScheduleDuplicateTaskError,
)

FIVE = timedelta(minutes=5)


def work() -> None:
    """Do nothing."""


def item(name: str, cron: str = "0 7 * * *", **said: Any) -> Any:
    return (
        {"name": name, "cron": cron, "callback": work, **said} if said else (name, cron, work, FIVE)
    )


SOUND = [item("a"), item("b", "5 7 * * *"), item("c"), ("d", "0 7 * * *", work, 2 * FIVE)]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the texts of the expressions that are read."""
    texts: list[str] = []
    parse = module.parse

    def noted(text: str, dialect: str) -> Any:
        texts.append(text)
        return parse(text, dialect)

    monkeypatch.setattr(module, "parse", noted)
    return texts


def test_a_set_is_what_each_of_its_declarations_is() -> None:
    made, plain = conf.registration_set(SOUND), conf.declarations(SOUND)
    assert len(made) == 4
    assert [made[place] for place in range(4)] == plain
    assert list(made) == plain
    assert made[1:3] == plain[1:3]
    by_name = ByName(made)
    assert list(by_name) == ["a", "b", "c", "d"]
    assert dict(by_name) == {each.name: each for each in plain}
    assert by_name.get("e") is None
    assert by_name.in_order is made
    assert [each.row() for each in (made[0].terms, made[3].terms)] == [
        plain[place].terms.row() for place in (0, 3)
    ]


def test_items_are_told_apart_by_what_runs_and_how() -> None:
    runs = [(work, FIVE), (item, FIVE), ("operator.not_", FIVE), (work, 2 * FIVE), (print, FIVE)]
    made = conf.registration_set([(f"t{n}", "0 7 * * *", *run) for n, run in enumerate(runs)])
    assert made._in_full is not None
    said = [(each.target.function, each.retry_delay) for each in made]
    assert said == [(not_ if run == "operator.not_" else run, delay) for run, delay in runs]


def test_an_expression_is_read_when_it_is_asked_for(parsed: list[str]) -> None:
    made = conf.registration_set(SOUND)
    assert (len(made), made[0].cron) == (4, "0 7 * * *")
    assert parsed == []
    assert made[1].terms is ByName(made)["b"].terms
    assert parsed == ["5 7 * * *"]
    made.understand()
    assert sorted(parsed) == ["0 7 * * *", "5 7 * * *", "5 7 * * *"]
    made.understand()
    assert len(parsed) == 3


def test_an_expression_is_read_in_the_dialect_of_its_kind() -> None:
    items = [item("a", "0 7 * * *", args=[1]), item("b", "0 0 7 * * *", args=[1])]
    made = conf.registration_set(items)
    made.understand()
    assert made._in_full is None
    assert (made[1].dialect, made[1].schedule) == ("ojs", conf.declarations(items)[1].schedule)


def test_kinds_differ_in_what_runs_or_in_their_zone() -> None:
    apart = [{"args": [1]}, {"args": [2]}, {"args": [2], "timezone": "Asia/Tokyo"}, {"args": [1]}]
    items = [item(name, **said) for name, said in zip("abcd", apart, strict=True)]
    for made in (conf.registration_set(items), Declarations.of(conf.declarations(items))):
        assert [each.name for each in made.one_of_each_kind()] == ["a", "b", "c"]


def test_what_is_trusted_is_not_read(parsed: list[str]) -> None:
    made = conf.registration_set(SOUND)
    made.trust()
    made.understand()
    assert parsed == []


def test_there_is_one_of_each_kind() -> None:
    made = conf.registration_set(SOUND)
    assert [each.name for each in made.one_of_each_kind()] == ["a", "d"]
    plain = Declarations.of(conf.declarations(SOUND))
    assert [each.name for each in plain.one_of_each_kind()] == ["a", "d"]


def test_the_digest_is_of_the_set_and_not_of_how_it_was_read() -> None:
    digest = digest_of_set(conf.declarations(SOUND))
    for items in (SOUND, SOUND[::-1]):
        assert conf.registration_set(items).digest() == digest
        assert digest_of_set(conf.declarations(items)) == digest


OTHERS: list[list[Any]] = [
    SOUND[1:],
    [*SOUND, item("e")],
    [item("A"), *SOUND[1:]],
    [item("a", "0  7 * * *"), *SOUND[1:]],
    [("a", "0 7 * * *", print, FIVE), *SOUND[1:]],
    [("a", "0 7 * * *", work, 2 * FIVE), *SOUND[1:]],
    [item("a", dialect="posix"), *SOUND[1:]],
    [item("a", args=[1]), *SOUND[1:]],
    [item("a", args=[True]), *SOUND[1:]],
    [item("a", args=[1.0]), *SOUND[1:]],
    [item("a", timezone="Asia/Tokyo"), *SOUND[1:]],
    [item("a", gap="shift"), *SOUND[1:]],
    [item("a", fold="both"), *SOUND[1:]],
]


def test_the_digest_changes_with_whatever_is_declared() -> None:
    sets = [SOUND, *OTHERS]
    assert len({conf.registration_set(items).digest() for items in sets}) == len(sets)
    assert len({conf.registration_set(SOUND, time_zone=z).digest() for z in ("UTC", "GMT")}) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: [item("a", "61 * * * *")],
        lambda: [*SOUND, item("e", "0 0 30 2 *")],
        lambda: [item("a", "61 * * * *"), item("b", "0 0 30 2 *"), item("a")],
        lambda: [item("a", "61 * * * *"), ("b", "0 7 * * *", "operator.nothing", FIVE)],
        lambda: [item("a"), item("a")],
        lambda: [item("a\0b", args=[1])],
        lambda: [item("a"), item("b\0c")],
        lambda: [item("a"), item("")],
        lambda: [item("a"), item("b" * 256)],
        lambda: [item("A"), item("b", args=[1]), item("B", args=[1])],
        lambda: [item("a"), ("b", "0 7 * * *", work, [])],
        lambda: [item("a"), item("b", "61 * * * *"), item("c", retry_delay=-FIVE)],
        lambda: [item("a", "0 7 * * *\nb")],
        lambda: [item("a", "0 7 * * *", spread=60), item("b", "61 * * * *", spread=60)],
        lambda: [item("a", last_run_at=None), item("b", "61 * * * *", last_run_at=None)],
    ],
)
def test_what_is_wrong_first_is_said_as_by_a_full_reading(make: Callable[[], list[Any]]) -> None:
    items = make()
    with pytest.raises(DeclarativeCronError) as full:
        conf.declarations(items)
    with pytest.raises(type(full.value)) as left:
        conf.registration_set(items).understand()
    assert (left.value.message, left.value.details) == (full.value.message, full.value.details)
    assert left.value.__notes__ == full.value.__notes__


def test_what_is_wrong_beside_expressions_is_found_at_once() -> None:
    with pytest.raises(ScheduleDuplicateTaskError):
        conf.registration_set([item("a"), item("a")])
    # And what is wrong before it comes first, though it would have been left.
    with pytest.raises(CronExpressionInvalidError):
        conf.registration_set([item("a", "61 * * * *"), item("b"), item("b")])


class Loud(str):
    """A text of another type."""


@pytest.mark.parametrize(
    "items",
    [
        [],
        [item(Loud("a"))],
        [item("a", Loud("0 7 * * *"))],
        [item("a", "0\t7 * * *")],
        [item("a", spread=60)],
        [item("a", last_run_at=None)],
        [["a", "0 7 * * *", work, FIVE]],
        [item("a"), ["b", "0 7 * * *", work, FIVE]],
    ],
)
def test_whatever_is_in_doubt_is_read_in_full(items: list[Any]) -> None:
    made = conf.registration_set(items)
    assert made._in_full is None
    assert list(made) == conf.declarations(items)
    assert [type(each.cron) for each in made] == [str] * len(items)
