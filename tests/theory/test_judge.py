"""What a verdict has beside its violations: figures, words, open obligations, what is left out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.core.overlap import POLICIES, POLICY_OF_SHORT_FORM
from django_declarative_cron.theory import check, judge
from django_declarative_cron.theory.events import Kind, read
from django_declarative_cron.theory.operators import FrozenTime

from .notation import Mode, at, both_modes, said, trace

BOUND: dict[str, Any] = {"lag": timedelta(seconds=30), "per_task": timedelta(0)}


# --- figures ---


@pytest.mark.requirement("004 L1")
def test_frozen_time_makes_a_start_late_and_nobody_guilty() -> None:
    verdict = judge(trace("owed · 60 Freeze to 600 · 605 RS a · 606 REs a"))
    assert verdict.ok
    (late,) = verdict.late
    assert (late.axiom, late.task, late.since, late.at) == ("L1", "a", at(60), at(605))
    assert (late.latency, late.frozen) == (timedelta(seconds=545), timedelta(seconds=540))
    assert verdict.worst_start_latency == timedelta(seconds=545)


def test_a_late_start_was_frozen_for_as_long_as_since_it_was_owed() -> None:
    verdict = judge(trace("init 10 [a] · 20 Freeze to 50 · 60 Due a · 60 Freeze to 600 · 605 RS a"))
    assert [late.frozen for late in verdict.late] == [timedelta(seconds=540)]


def test_a_violation_has_its_instant_task_and_reading() -> None:
    verdict = judge(trace("owed · 605 RS a · 606 REs a"))
    (violation,) = verdict.violations
    assert (violation.at, violation.task, violation.mode) == (at(60), "a", "repaired")
    assert verdict.late == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("owed · 90 RS a", set()),
        ("owed · 90.000001 RS a", {"L1 2"}),
        ("init 10 [a] · 20 Freeze to 50 · 60 Due a · 90 RS a", set()),
        ("init 10 [a] · 20 Freeze to 50 · 60 Due a · 90.000001 RS a", {"L1 3"}),
    ],
)
def test_the_bound_can_be_chosen(text: str, expected: set[str]) -> None:
    verdict = judge(trace(text), **BOUND)
    assert (said(verdict.violations), verdict.late) == (expected, ())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("init 10 [a]", None),
        ("owed · 67 RS a · 68 REs a · 120 Due a · 122 RS a · 123 REs a", 7),
        ("init 10 [a,b] · 60 Due a + Due b · 62 RS a · 65 RS b · 66 REs a · 67 REs b", 5),
        ("failed · 400 RS a · 401 REs a", 38),
        ("{a 4,5} init 10 [a] · 340 RS a · 341 REs a", 100),
    ],
)
@both_modes
def test_the_worst_latency_is_that_of_the_slowest_start(
    text: str, seconds: float | None, mode: Mode
) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert judge(trace(text), mode).worst_start_latency == expected


def test_violations_come_in_the_order_of_the_trace() -> None:
    text = "init 10 [a,b] · 20 RS b · 60 Due a · 70 RS b · 300 Tick"
    assert [v.position for v in check(trace(text))] == [2, 3, 3, 4]


def test_an_unknown_mode_is_refused_and_an_empty_trace_is_fine() -> None:
    with pytest.raises(ValueError, match="mode must be repaired"):
        check([], "strict")  # type: ignore[arg-type]
    assert check([]) == []


# --- frozen time ---


@pytest.mark.parametrize(
    ("freezes", "thawed", "total"),
    [
        ([], 5, 0),
        ([(10, 20)], None, 10),
        ([(10, 20), (12, 18)], None, 10),  # within
        ([(10, 20), (12, 25)], None, 15),  # beyond
        ([(10, 20), (20, 25)], None, 15),  # right behind
        ([(10, 20), (30, 33)], None, 13),  # apart
        ([(10, 20)], 10, 0),
        ([(10, 20)], 14, 4),
        ([(10, 20)], 20, 10),
        ([(10, 20)], 30, 10),
    ],
)
def test_freezes_count_once_and_an_action_ends_the_one_it_is_in(
    freezes: list[tuple[float, float]], thawed: float | None, total: float
) -> None:
    frozen = FrozenTime()
    for since, until in freezes:
        frozen.freeze(at(since), at(until))
    if thawed is not None:
        frozen.thaw(at(thawed))
    assert (frozen.total(at(40)), frozen.covers(at(40))) == (timedelta(seconds=total), False)


@pytest.mark.parametrize(
    ("seconds", "is_covered", "total"),
    [(10, True, 0), (15, True, 5), (20, False, 10), (30, False, 10)],
)
def test_a_freeze_covers_its_start_and_not_its_end(
    seconds: float, is_covered: bool, total: float
) -> None:
    frozen = FrozenTime()
    frozen.freeze(at(10), at(20))
    found = (frozen.covers(at(seconds)), frozen.total(at(seconds)))
    assert found == (is_covered, timedelta(seconds=total))


# --- words ---

NOTHING = (
    "Active true, Registered true, DuePending false, RetryPending false,"
    " OrphanedPending false, BootDuePending false"
)


@pytest.mark.parametrize(
    ("text", "mode", "explanation"),
    [
        ("owed · 61 SS + RS a", "repaired", "SS and RS a at one position"),
        (
            "init 10 [a] · 20 REs a",
            "repaired",
            "REs without a run in flight; newest start: none",
        ),
        (
            "ran · 63 RS a · 64 REs a",
            "repaired",
            "a second success without a due since the start at 2024-01-01 00:01:01.000000"
            " (position 3); newest due: 2024-01-01 00:01:00.000000 (position 2)",
        ),
        (
            "ran · 65 RS a",
            "repaired",
            f"started without an obligation just before: {NOTHING};"
            " last change: RS at 2024-01-01 00:01:01.000000 (position 3)",
        ),
        (
            "owed · 61 RS a · 120 Due a · 130 RS a",
            "letter",
            f"started without an obligation just before: {NOTHING}; last change: ",
        ),
        (
            "failed · 130 RS a",
            "letter",
            f"started without an obligation just before: {NOTHING}; last change: ",
        ),
        ("owed", "letter", NOTHING.replace("DuePending false", "DuePending true", 1)),
    ],
)
def test_a_violation_says_what_it_saw(text: str, mode: Mode, explanation: str) -> None:
    told = [each.explanation for each in check(trace(text), mode)]
    assert any(each.startswith(explanation) for each in told), told


# --- what is left out ---


@pytest.mark.parametrize("policy", sorted({*POLICIES} - {POLICY_OF_SHORT_FORM}))
def test_the_theory_governs_coalesce_only(policy: str) -> None:
    text = f"{{a 1}} init 10 [a:{policy}] · 20 RS a · 21 RS a · 22 REf a · 900 Tick"
    verdict = judge(trace(text))
    assert verdict.ok
    assert (verdict.ungoverned, verdict.starts, verdict.checked_starts) == (("a",), 2, 0)
    governed = judge(trace("{a 1} init 10 [a:coalesce] · 20 RS a"))
    assert (governed.ok, governed.starts, governed.checked_starts) == (False, 1, 1)


def test_only_those_are_named_of_which_the_theory_does_not_speak() -> None:
    records = trace("{a *, b *} init 10 [a,b:skip] · 60 Tick · 61 RS a · 62 REs a")
    assert judge(records).ungoverned == ("b",)


@pytest.mark.parametrize(
    ("kind", "is_handed"), [("RS", True), ("REs", True), ("REf", True), ("Due", False)]
)
def test_only_what_is_said_of_a_run_can_be_handed_over(kind: Kind, is_handed: bool) -> None:
    record = {"at": at(0), "event": kind, "task": "a", "handed": True}
    assert read(0, record).event.handed is is_handed
    assert read(0, record | {"handed": "yes"}).event.handed is False
