"""Who is to blame: the environment axioms, frozen time, and what depends on a fault."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.theory import check, judge

from .notation import at, trace
from .said import blamed, said
from .test_examples import Mode

OWED = "init 10 [a] · 60 Due a"


# --- the six examples of the design ---


def test_e1_frozen_time_makes_a_start_late_and_nobody_guilty() -> None:
    verdict = judge(trace(f"{OWED} · 60 Freeze to 600 · 605 RS a · 606 REs a"))
    assert verdict.ok
    (late,) = verdict.late
    assert (late.axiom, late.task, late.since, late.at) == ("L1", "a", at(60), at(605))
    assert (late.latency, late.frozen) == (timedelta(seconds=545), timedelta(seconds=540))
    assert verdict.worst_start_latency == timedelta(seconds=545)


@pytest.mark.requirement("004 L1")
def test_e2_without_a_freeze_the_scheduler_is_to_blame() -> None:
    verdict = judge(trace(f"{OWED} · 605 RS a · 606 REs a"))
    (violation,) = verdict.violations
    assert (violation.axiom, violation.owner, violation.position) == ("L1", "scheduler", 2)
    assert (violation.at, violation.task) == (at(60), "a")
    assert verdict.late == ()


@pytest.mark.requirement("004 EA3")
def test_e3_two_starts_in_one_record() -> None:
    verdict = judge(trace("init 10 [a,b] · 60 Due a + Due b · 61 RS a + RS b"))
    assert said(verdict.violations) == {"EA3 3"}
    assert blamed(verdict.violations) == {"EA3": "recorder"}
    assert any(each.axiom.startswith("EA") for each in verdict.violations)


@pytest.mark.requirement("004 EA2")
def test_e4_a_start_inside_a_freeze() -> None:
    violations = check(trace(f"{OWED} · 61 Freeze to 600 · 70 RS a · 71 REs a"))
    assert said(violations) == {"EA2 4"}
    assert blamed(violations) == {"EA2": "recorder"}


@pytest.mark.requirement("004 L3")
def test_e5_a_stop_waits_for_a_run_that_never_ends() -> None:
    assert check(trace(f"{OWED} · 61 RS a · 65 SS · 99999 Tick")) == []


@pytest.mark.requirement("004 S5", "004 Safety Axioms/3")
def test_e6_a_valid_list_refused() -> None:
    violations = check(trace("10 IS[a] · 11 IEf[a]"))
    assert said(violations) == {"S5 1"}
    assert blamed(violations) == {"S5": "scheduler"}


# --- the axioms ---


@pytest.mark.requirement("004 EA1")
@pytest.mark.parametrize("action", ["RS a", "REs a", "IS[a]", "SS"])
def test_ea1_a_crash_is_alone(action: str) -> None:
    violations = check(trace(f"{OWED} · 61 Crash + {action}"), "letter")
    assert ("EA1 3", "recorder") in {(f"{v.axiom} {v.position}", v.owner) for v in violations}


@pytest.mark.requirement("004 EA1")
def test_ea1_a_pulse_may_meet_a_crash() -> None:
    assert check(trace("init 10 [a] · 60 Crash + Due a")) == []


@pytest.mark.requirement("004 EA2")
def test_ea2_a_freeze_covers_its_start_and_not_its_end() -> None:
    text = "init 10 [a] · 60 Due a · 60 Freeze to 70 · {} RS a"
    assert said(check(trace(text.format(60)))) == {"EA2 4"}
    assert check(trace(text.format(70))) == []


def test_ea2_what_came_before_the_freeze_is_outside() -> None:
    assert check(trace("init 10 [a] · 60 Due a · 61 RS a · 61 Freeze to 70 · 70 REs a")) == []


@pytest.mark.requirement("004 EA2")
def test_ea2_an_action_shows_that_the_freeze_was_none() -> None:
    text = f"{OWED} · 60 Freeze to 9000 · 100 SS · 101 SE · 102 IS[a] · 103 IEs[a] · 104 RS a"
    assert said(check(trace(text))) == {"EA2 4"}


@pytest.mark.requirement("004 EA4")
@pytest.mark.parametrize("mode", ["letter", "repaired"])
@pytest.mark.parametrize(
    "text", ["{}", "{} · 62 Freeze to 9000", "{} · 70 Freeze to 71 · 99999 Tick"]
)
def test_ea4_no_finite_trace_breaks_it(text: str, mode: Mode) -> None:
    assert judge(trace(text.format(f"{OWED} · 61 RS a · 62 REs a")), mode).violations == ()


@pytest.mark.requirement("004 EA6")
def test_ea6_and_s4_object_to_one_record() -> None:
    violations = check(trace(f"{OWED} · 61 RS a · 70 Crash · 80 REf a"))
    assert said(violations) == {"S4 5", "EA6 5"}
    assert blamed(violations) == {"S4": "recorder", "EA6": "recorder"}


@pytest.mark.requirement("004 S4")
def test_s4_a_second_end_of_a_claimed_run_is_the_schedulers() -> None:
    violations = check(trace(f"{OWED} · 61 RS a · 62 REs a · 63 REs a"))
    assert [(v.axiom, v.owner) for v in violations] == [("S4", "scheduler")]


def test_s4_an_end_without_any_claim_is_the_recorders() -> None:
    violations = check(trace("init 10 [a] · 61 REs a"))
    assert [(v.axiom, v.owner) for v in violations] == [("S4", "recorder")]


# --- what may follow from a fault is conditional ---

SPURIOUS = "init 10 [a,b] · {} · 100 RS a"


@pytest.mark.requirement("004 EA3")
@pytest.mark.parametrize(
    ("fault", "owner"),
    [
        ("50 Tick", "scheduler"),
        ("50 SS + IS[a]", "conditional"),  # EA3
        ("50 Crash + SS", "conditional"),  # EA1
        ("50 REs a", "conditional"),  # S4: an end of the task itself
        ("50 REs b", "scheduler"),  # S4: of another one
        ("50 Freeze to 70 · 60 RS b", "scheduler"),  # EA2 says nothing about safety
    ],
)
def test_a_later_violation_depends_on_an_earlier_fault(fault: str, owner: str) -> None:
    violations = check(trace(SPURIOUS.format(fault)))
    (start,) = [v for v in violations if (v.axiom, v.task, v.at) == ("S1", "a", at(100))]
    assert start.owner == owner


def test_a_freeze_that_was_none_makes_the_liveness_conditional() -> None:
    text = f"{OWED} · 60 Freeze to 70 · 65 SS · 66 SE · init 67 [a] · 500 RS a"
    violations = check(trace(text))
    assert blamed(violations) == {"EA2": "recorder", "L1": "conditional"}


def test_a_fault_says_nothing_about_what_came_before() -> None:
    violations = check(trace("init 10 [a] · 20 RS a · 21 Crash + SS"))
    assert [(v.axiom, v.owner) for v in violations] == [("S1", "scheduler"), ("EA1", "recorder")]


# --- an initialisation that fails ---


def _refusal(**fields: object) -> list[dict[str, object]]:
    records = trace("10 IS[a] · 11 IEf[a]")
    records[1] |= fields
    return records


def test_r9_an_initialisation_may_fail_with_the_storage() -> None:
    assert check(_refusal(cause="storage")) == []
    assert blamed(check(_refusal(cause="storage"), "letter")) == {"S5": "environment"}


def test_r9_a_freeze_counts_as_a_storage_that_is_away() -> None:
    records = trace("10 IS[a] · 11 Freeze to 60 · 20 IEf[a]")
    assert check(records) == []
    assert blamed(check(records, "letter")) == {"EA2": "recorder", "S5": "environment"}
    assert blamed(check(trace("10 IS[a] · 11 Freeze to 60 · 60 IEf[a]"))) == {"S5": "scheduler"}


def test_s5_a_record_may_say_that_the_list_was_not_valid() -> None:
    assert check(_refusal(valid=False)) == []
    records = trace("init 10 [a]")
    records[1]["valid"] = False
    assert blamed(check(records)) == {"S5": "scheduler"}


@pytest.mark.requirement("004 S5", "004 Safety Axioms/4")
@pytest.mark.parametrize(
    "entry",
    [
        {"name": ""},
        {"name": "x" * 256},
        {"name": "a\nb"},
        {"name": 7},
        "a",
        {"name": "a", "cron": "61 * * * *"},
        {"name": "a", "cron": 5},
        {"name": "a", "cron": "* * * * *", "timezone": "EST"},
        {"name": "a", "retry_delay": -timedelta(seconds=1)},
        {"name": "a", "retry_delay": timedelta(microseconds=1)},
        {"name": "a", "retry_delay": 5},
    ],
)
def test_s5_knows_a_list_that_is_not_valid(entry: object) -> None:
    records = trace("10 IS[] · 11 IEs[]")
    for record in records:
        record["registrations"] = [entry]
    assert blamed(check(records)) == {"S5": "scheduler"}
    records[1]["event"] = "IEf"
    assert check(records) == []


@pytest.mark.requirement("004 Domains & Data Types/2")
def test_s5_refuses_a_name_that_comes_twice() -> None:
    assert blamed(check(trace("init 10 [a,a]"))) == {"S5": "scheduler"}
    assert check(trace("10 IS[a,a] · 11 IEf[a,a]")) == []


@pytest.mark.requirement("004 Safety Axioms/3")
@pytest.mark.parametrize("delay", [timedelta(0), timedelta(milliseconds=1), timedelta.max])
def test_s5_accepts_any_delay_from_a_millisecond_on_and_none(delay: timedelta) -> None:
    records = trace("init 10 [a] · 60 Due a · 61 RS a · 62 REf a")
    for record in records[:2]:
        record["registrations"][0]["retry_delay"] = delay
    assert check(records) == []
