"""What a verdict says beside yes and no: figures, words, who is to blame, what is left out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.theory import check, judge
from django_declarative_cron.theory.events import Kind, read

from .notation import Record, at, trace
from .said import blamed, said

OWED = "init 10 [a] · 60 Due a"
BOUND: dict[str, Any] = {"lag": timedelta(seconds=30), "per_task": timedelta(0)}
A_BIT = 0.000001


# --- figures ---


def test_an_answer_at_the_very_bound_is_in_time() -> None:
    in_time = judge(trace(f"{OWED} · 90 RS a"), **BOUND)
    assert (in_time.ok, in_time.late) == (True, ())
    late = judge(trace(f"{OWED} · {90 + A_BIT} RS a"), **BOUND)
    assert said(late.violations) == {"L1 2"}


def test_a_freeze_before_an_obligation_excuses_nothing() -> None:
    text = "init 10 [a] · 20 Freeze to 50 · 60 Due a · {} RS a"
    assert check(trace(text.format(90)), **BOUND) == []
    assert said(check(trace(text.format(90 + A_BIT)), **BOUND)) == {"L1 3"}


def test_a_late_start_was_frozen_for_as_long_as_since_it_was_owed() -> None:
    verdict = judge(trace("init 10 [a] · 20 Freeze to 50 · 60 Due a · 60 Freeze to 600 · 605 RS a"))
    assert [late.frozen for late in verdict.late] == [timedelta(seconds=540)]


def test_the_worst_latency_need_not_be_the_last() -> None:
    verdict = judge(trace(f"{OWED} · 67 RS a · 68 REs a · 120 Due a · 122 RS a · 123 REs a"))
    assert verdict.worst_start_latency == timedelta(seconds=7)


# --- words ---


@pytest.mark.parametrize(
    ("text", "explanation"),
    [
        (f"{OWED} · 61 SS + RS a", "SS and RS a at one position"),
        ("init 10 [a] · 20 REs a", "REs without a run in flight; newest start: none"),
        (
            "init 10 [a] · 60 Due a · 61 RS a · 62 REs a · 63 RS a · 64 REs a",
            "a second success without a due since the start at 2024-01-01 00:01:01.000000"
            " (position 3); newest due: 2024-01-01 00:01:00.000000 (position 2)",
        ),
    ],
)
def test_a_violation_says_what_it_saw(text: str, explanation: str) -> None:
    told = [each.explanation for each in check(trace(text))]
    assert any(each.startswith(explanation) for each in told), told


@pytest.mark.parametrize("before", ["120 Due a", "62 REf a"])
def test_a_start_that_nothing_asks_for_is_told_with_all_that_could_have(before: str) -> None:
    (violation,) = check(trace(f"{OWED} · 61 RS a · {before} · 130 RS a"), "letter")[:1]
    assert violation.axiom == "S1"
    assert violation.explanation.partition("before: ")[2].partition(";")[0] == (
        "Active true, Registered true, DuePending false, RetryPending false,"
        " OrphanedPending false, BootDuePending false"
    )


def test_an_open_obligation_says_what_it_is_made_of() -> None:
    (obligation,) = judge(trace(OWED), "letter").open_obligations
    assert obligation.explanation.partition(";")[0] == (
        "Active true, Registered true, DuePending true, RetryPending false,"
        " OrphanedPending false, BootDuePending false"
    )


# --- who is to blame ---


@pytest.mark.parametrize(
    ("between", "owner"), [("", "scheduler"), ("70 Crash · init 75 [a] · ", "recorder")]
)
def test_an_end_after_a_crash_without_a_start_since_is_none_of_the_schedulers_doing(
    between: str, owner: str
) -> None:
    violations = check(trace(f"{OWED} · 61 RS a · 62 REs a · {between}80 REf a"))
    assert blamed(violations)["S4"] == owner


# --- what is left out ---


def _ungoverned(text: str, name: str = "b") -> list[Record]:
    """Let overlaps of a task be skipped, of which the theory does not speak."""
    records = trace(text, {"a": "* * * * *", "b": "* * * * *"})
    for record in records:
        for entry in record.get("registrations", ()):
            entry["overlap_policy"] = "skip" if entry["name"] == name else "coalesce"
    return records


def test_only_those_are_named_of_which_the_theory_does_not_speak() -> None:
    records = _ungoverned("init 10 [a,b] · 60 Tick · 61 RS a · 62 REs a")
    assert judge(records).ungoverned == ("b",)


@pytest.mark.parametrize(
    ("kind", "is_handed"), [("RS", True), ("REs", True), ("REf", True), ("Due", False)]
)
def test_only_what_is_said_of_a_run_can_be_handed_over(kind: Kind, is_handed: bool) -> None:
    record = {"at": at(0), "event": kind, "task": "a", "handed": True}
    assert read(0, record).event.handed is is_handed
    assert read(0, record | {"handed": "yes"}).event.handed is False


# --- the letter ---
