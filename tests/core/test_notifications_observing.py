"""Polling notifies of changes without an event, and repeats none."""

from __future__ import annotations

from datetime import UTC, datetime

from django_declarative_cron.core.notifications import Observation, Observer

AT = datetime(2024, 1, 1, 10, tzinfo=UTC)


def told(observer: Observer, look: Observation) -> list[tuple[str, str]]:
    return [(notice.occasion, notice.task) for notice in observer.compare(look)]


def leads(**more: object) -> Observation:
    return Observation(AT, leads=True, **more)  # type: ignore[arg-type]


def test_a_new_leader_does_not_repeat_known_failures() -> None:
    observer = Observer()
    assert told(observer, leads(failing={"a": (3, "")})) == []
    assert told(observer, leads(failing={"a": (4, ""), "b": (1, "ValueError")})) == [
        ("failure", "b")
    ]
    assert told(observer, leads()) == [("recovery", "a"), ("recovery", "b")]
    assert told(observer, leads()) == []


def test_a_poll_does_not_repeat_the_notice_of_an_event() -> None:
    observer = Observer()
    assert told(observer, leads()) == []
    observer.task_failed("a")
    observer.begin_poll()
    assert told(observer, leads(failing={"a": (1, "")})) == []
    assert observer.task_succeeded("a")
    assert not observer.task_succeeded("a")
    observer.begin_poll()
    assert told(observer, leads()) == []


def test_events_during_a_poll_are_newer_than_its_rows() -> None:
    observer = Observer()
    assert told(observer, leads(failing={"b": (1, "")})) == []
    observer.begin_poll()
    observer.task_failed("a")
    assert observer.task_succeeded("b")
    # Both events are newer than the rows.
    assert told(observer, leads(failing={"b": (1, "")})) == []
    observer.begin_poll()
    assert told(observer, leads(failing={"a": (1, "")})) == []
    assert observer.task_succeeded("a")


def test_an_overdue_task_and_its_recovery_are_notified() -> None:
    observer = Observer()
    assert told(observer, leads(overdue={"a": AT})) == [("overdue", "a")]
    assert told(observer, leads(overdue={"a": AT})) == []
    assert told(observer, leads()) == [("recovery", "a")]


def test_one_instance_notifies_of_a_missing_leader_and_of_its_end() -> None:
    speaker, silent = Observer(), Observer()
    gone = Observation(AT, leads=False, speaks=True, leaderless=45.0)
    quiet = Observation(AT, leads=False, speaks=False, leaderless=45.0)
    assert told(speaker, gone) == [("no_leader", "")]
    assert told(silent, quiet) == []
    assert told(speaker, Observation(AT, leads=False, speaks=True)) == [("recovery", "")]
    assert told(silent, Observation(AT, leads=False)) == []


def test_a_former_leader_does_not_notify_of_tasks() -> None:
    observer = Observer()
    told(observer, leads(failing={"a": (1, "")}))
    assert told(observer, Observation(AT, leads=False)) == []
    assert not observer.task_succeeded("a")
