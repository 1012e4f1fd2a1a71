"""A look at the rows tells of what no event told, and of nothing twice."""

from __future__ import annotations

from datetime import UTC, datetime

from django_declarative_cron.core.notifications import Observation, Observer

AT = datetime(2024, 1, 1, 10, tzinfo=UTC)


def told(observer: Observer, look: Observation) -> list[tuple[str, str]]:
    return [(notice.occasion, notice.task) for notice in observer.compare(look)]


def leads(**more: object) -> Observation:
    return Observation(AT, leads=True, **more)  # type: ignore[arg-type]


def test_what_a_new_leader_finds_failing_was_told_by_another() -> None:
    observer = Observer()
    assert told(observer, leads(failing={"a": (3, "")})) == []
    assert told(observer, leads(failing={"a": (4, ""), "b": (1, "ValueError")})) == [
        ("failure", "b")
    ]
    assert told(observer, leads()) == [("recovery", "a"), ("recovery", "b")]
    assert told(observer, leads()) == []


def test_what_an_event_told_is_not_told_again() -> None:
    observer = Observer()
    assert told(observer, leads()) == []
    observer.task_failed("a")
    observer.begin_poll()
    assert told(observer, leads(failing={"a": (1, "")})) == []
    assert observer.task_succeeded("a")
    assert not observer.task_succeeded("a")
    observer.begin_poll()
    assert told(observer, leads()) == []


def test_what_is_heard_during_a_look_is_newer_than_the_rows() -> None:
    observer = Observer()
    assert told(observer, leads(failing={"b": (1, "")})) == []
    observer.begin_poll()
    observer.task_failed("a")
    assert observer.task_succeeded("b")
    # The rows were read before either.
    assert told(observer, leads(failing={"b": (1, "")})) == []
    observer.begin_poll()
    assert told(observer, leads(failing={"a": (1, "")})) == []
    assert observer.task_succeeded("a")


def test_a_task_that_is_overdue_and_then_not_is_told_of_twice() -> None:
    observer = Observer()
    assert told(observer, leads(overdue={"a": AT})) == [("overdue", "a")]
    assert told(observer, leads(overdue={"a": AT})) == []
    assert told(observer, leads()) == [("recovery", "a")]


def test_that_nobody_leads_is_told_by_one_and_its_end_by_the_same() -> None:
    speaker, silent = Observer(), Observer()
    gone = Observation(AT, leads=False, speaks=True, leaderless=45.0)
    quiet = Observation(AT, leads=False, speaks=False, leaderless=45.0)
    assert told(speaker, gone) == [("no_leader", "")]
    assert told(silent, quiet) == []
    assert told(speaker, Observation(AT, leads=False, speaks=True)) == [("recovery", "")]
    assert told(silent, Observation(AT, leads=False)) == []


def test_who_has_lost_the_lead_tells_of_no_task() -> None:
    observer = Observer()
    told(observer, leads(failing={"a": (1, "")}))
    assert told(observer, Observation(AT, leads=False)) == []
    assert not observer.task_succeeded("a")
