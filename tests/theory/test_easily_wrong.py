"""What is easily done wrong: section 6 of the design, one test each, and the reason in its name."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.theory import check, judge

from .literal import Hold, HoldPlus
from .notation import at, trace
from .said import said
from .test_examples import Mode, both_modes

RAN = "init 10 [a] · 60 Due a · 61 RS a · 62 REs a"
FAILED = "init 10 [a] · 60 Due a · 61 RS a · 62 REf a"


@pytest.mark.requirement("004 S1")
@both_modes
def test_1_s1_looks_at_the_previous_position(mode: Mode) -> None:
    assert "S1 2" in said(check(trace("init 10 [a] · 60 Due a + RS a"), mode))
    assert check(trace("init 10 [a] · 60 Due a · 60 RS a"), mode) == []


@both_modes
def test_2_nothing_starts_after_a_stop_started(mode: Mode) -> None:
    assert "S1 4" in said(check(trace("init 10 [a] · 60 Due a · 61 SS · 61 RS a"), mode))


def test_3_a_strict_hold_revives_at_the_next_position() -> None:
    hold, plus = Hold(), HoldPlus()
    assert [hold.step(True, True), hold.step(False, False)] == [False, True]
    assert [plus.step(True, True), plus.step(False, False)] == [True, True]


@pytest.mark.parametrize("operator", [Hold, HoldPlus])
def test_3_both_holds_keep_and_clear(operator: type[Hold] | type[HoldPlus]) -> None:
    hold = operator()
    sets, clears = "01000", "00010"
    truth = [hold.step(s == "1", c == "1") for s, c in zip(sets, clears, strict=True)]
    assert truth == [False, True, True, False, False]


@pytest.mark.requirement("004 Safety Axioms/2")
@both_modes
def test_3_a_task_that_starts_and_ends_at_once_runs_from_the_next_position_on(mode: Mode) -> None:
    records = trace("init 10 [a] · 60 Due a · 61 RS a + REs a · 62 Tick · 63 REs a")
    expected = {"letter": {"EA3 3", "S4 3"}, "repaired": {"EA3 3", "S4 3", "S4 5"}}
    assert said(check(records, mode)) == expected[mode]


@pytest.mark.requirement("004 S2")
@both_modes
def test_4_a_due_during_the_run_frees_the_next_success(mode: Mode) -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 120 Due a · 130 REs a · 131 RS a · 132 REs a"
    assert check(trace(text), mode) == []


@both_modes
def test_5_a_due_survives_a_run_that_began_earlier(mode: Mode) -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 120 Due a · 130 REs a"
    assert said(check(trace(text), mode)) == {"open a"}


@pytest.mark.requirement("004 Liveness Axioms/1")
@both_modes
@pytest.mark.parametrize("end", ["65 Crash", "stop 65"])
def test_6_what_was_due_is_owed_after_a_crash_or_a_stop(end: str, mode: Mode) -> None:
    text = f"init 10 [a] · 60 Due a · {end} · init 200 [a] · 202 RS a · 203 REs a"
    assert check(trace(text), mode) == []


@both_modes
def test_6_what_falls_due_while_nothing_is_active_is_owed(mode: Mode) -> None:
    text = f"{RAN} · 65 Crash · 120 Due a · init 200 [a] · 202 RS a · 203 REs a"
    assert check(trace(text), mode) == []


@both_modes
def test_7_an_override_is_no_first_coming_by_the_letter(mode: Mode) -> None:
    crons = {"a": "1 * * * *", "a'": "2 * * * *"}
    text = "init 10 [a] · 60 Due a · init 70 [a'] · 80 RS a"
    expected = {"letter": {"S1 5"}, "repaired": {"S1 5"}}
    assert said(check(trace(text, crons), mode)) == expected[mode]


@both_modes
def test_7_a_repeated_list_is_no_first_coming(mode: Mode) -> None:
    assert check(trace("init 10 [a] · 60 Due a · init 100 [a] · 102 RS a"), mode) == []


@both_modes
@pytest.mark.parametrize("event", ["70 IS[b]", "69 IS[b] · 70 IEf[b]"])
def test_8_only_an_accepted_list_is_registered(event: str, mode: Mode) -> None:
    of_the_old = check(trace(f"init 10 [a] · 60 Due a · {event} · 80 RS a"), mode)
    of_the_new = check(trace(f"init 10 [a] · 60 Due b · {event} · 80 RS b"), mode)
    assert "S1" not in {v.axiom for v in of_the_old}
    assert "S1" in {v.axiom for v in of_the_new}


@both_modes
@pytest.mark.parametrize("tick", ["· 120 Tick ", ""])
def test_9_a_minute_ends_whether_anything_is_due_or_not(tick: str, mode: Mode) -> None:
    text = f"60 Due a {tick}· init 125 [a] · 127 RS a"
    assert {v.axiom for v in check(trace(text), mode)} == {"S1"}


@both_modes
def test_10_dues_count_for_tasks_that_are_not_registered(mode: Mode) -> None:
    assert check(trace("60 Due a · init 70 [a] · 72 RS a · 73 REs a"), mode) == []


@both_modes
def test_11_a_stop_knows_what_is_registered_after_a_crash(mode: Mode) -> None:
    records = trace("init 10 [a] · 20 Crash · 30 SS · 900 Tick")
    assert [(v.axiom, v.position) for v in judge(records, mode).open_obligations] == [("L3", 3)]


@both_modes
def test_12_a_list_that_is_refused_leaves_the_old_one_active(mode: Mode) -> None:
    records = trace("init 10 [a] · 20 IS[b] · 21 IEf[b] · 60 Due a · 61 RS a · 62 REs a")
    records[3]["cause"] = "storage"
    assert {v.axiom for v in check(records, mode)} <= {"S5"}


@both_modes
def test_13_a_restart_within_the_minute_is_no_first_coming(mode: Mode) -> None:
    text = f"{RAN} · 65 Crash · init 66 [a] · 68 RS a"
    assert said(check(trace(text), mode)) == {"S1 8"}


def test_14_old_retry_pulses_count_by_the_letter_only() -> None:
    records = trace(f"{FAILED} · 120 Due a · 121 RS a · 122 REs a · 363 RS a · 364 REs a")
    assert {v.axiom for v in check(records, "letter")} == {"S2"}
    assert {v.axiom for v in check(records)} == {"S1", "S2"}


@both_modes
def test_15_made_pulses_have_their_own_instant(mode: Mode) -> None:
    verdict = judge(trace(f"{FAILED} · 400 RS a · 401 REs a"), mode)
    assert verdict.worst_start_latency == timedelta(seconds=38)


@both_modes
def test_15_a_made_due_has_its_own_instant(mode: Mode) -> None:
    records = trace("init 10 [a] · 340 RS a · 341 REs a", {"a": "4,5 * * * *"})
    verdict = judge(records, mode)
    assert verdict.worst_start_latency == timedelta(seconds=100)
    assert [(v.axiom, v.at) for v in verdict.violations] == (
        [("L1", at(240))] if mode == "repaired" else []
    )


@pytest.mark.requirement("004 S3")
@both_modes
def test_16_an_end_after_the_stop_is_not_forgiven(mode: Mode) -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 65 SS · 66 SE · 66 REs a"
    assert said(check(trace(text), mode)) == {"S3 5"}


@both_modes
def test_17_a_crash_that_is_not_written_down_keeps_the_task_running(mode: Mode) -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · init 80 [a] · 82 RS a"
    assert said(check(trace(text), mode)) == {"S1 6"}
    assert check(trace(text.replace("init 80", "79 Crash · init 80")), mode) == []
