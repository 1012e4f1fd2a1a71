"""The repaired reading: R1 to R10, and what the semantics say beyond them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.theory import check, judge

from .notation import CRONS, at, trace
from .said import blamed, said

MINUTELY = {"a": "* * * * *", "a'": "* * * * * ", "b": "* * * * *"}
FAILED = "init 10 [a] · 60 Due a · 61 RS a · 62 REf a"


# --- R1: the boot obligation stays ---


def test_r1_boot_obligations_are_met_one_after_another() -> None:
    text = "60 Due a + Due b · init 70 [a,b] · 72 RS a · 140 RS b"
    assert check(trace(text)) == []


def test_r1_a_boot_obligation_is_owed_until_it_is_met() -> None:
    assert said(check(trace("60 Due a · init 70 [a] · 170 Tick"))) == {"L1 2", "open a"}


def test_r1_nothing_is_owed_at_boot_by_what_still_runs() -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · init 65 [b] · init 70 [a] · 80 REs a · {}"
    assert check(trace(text.format("300 Tick"))) == []
    assert "S1" in blamed(check(trace(text.format("90 RS a"))))


# --- R2: one retry ---


def test_r2_a_start_clears_the_retry_it_overtakes() -> None:
    text = f"{FAILED} · 120 Due a · 121 RS a · 130 REs a · 500 Tick"
    assert check(trace(text)) == []
    assert said(check(trace(text), "letter")) == {"open a"}


def test_r2_the_newest_failure_counts() -> None:
    text = f"{FAILED} · 120 Due a · 121 RS a · 122 REf a · {{}} RS a"
    assert said(check(trace(text.format(400)))) == {"S1 9"}
    assert check(trace(text.format(422))) == []


def test_r2_a_retry_is_pending_from_its_very_instant() -> None:
    assert check(trace(f"{FAILED} · 362 RS a")) == []
    assert said(check(trace(f"{FAILED} · 361.999999 RS a"))) == {"S1 5"}


def test_a_failure_may_say_when_its_retry_is_due() -> None:
    records = trace(f"{FAILED} · 100 RS a")
    records[4]["retry_at"] = at(100)
    assert check(records) == []
    records[4]["retry_at"] = None
    assert said(check(records)) == {"S1 5"}


def test_stated_retries_count_where_no_delay_is_known() -> None:
    records = trace(f"{FAILED} · 100 RetryDue a · 101 RS a")
    assert said(check(records)) == {"S1 6"}
    for record in records[:2]:
        del record["registrations"][0]["retry_delay"]
    assert check(records) == []


# --- R3: a crash orphans what runs ---


def test_r3_an_interrupted_run_restarts_once() -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 62 Crash · init 70 [a] · 72 RS a · 73 REs a"
    assert check(trace(text)) == []
    again = f"{text} · 74 Crash · init 80 [a] · 82 RS a"
    assert said(check(trace(again))) == {"S1 12"}


# --- R4: no activity while a stop is outstanding ---


def test_r4_an_initialisation_during_a_stop_does_not_activate() -> None:
    text = "10 SS · 11 IS[a] · 12 IEs[a] · 13 SE · 60 Due a · {}"
    assert check(trace(text.format("900 Tick"))) == []
    assert said(check(trace(text.format("61 RS a")))) == {"S1 5"}


def test_r4_a_crash_ends_a_stop() -> None:
    text = "10 SS · 11 Crash · init 20 [a] · 60 Due a · 61 RS a"
    assert check(trace(text)) == []


# --- R5: from when a stop is awaited ---


@pytest.mark.requirement("004 L3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("init 10 [a] · 60 Due a · 61 RS a · 65 SS · 70 REs a · 160.006 Tick", {"open L3"}),
        ("init 10 [a] · 60 Due a · 61 RS a · 65 SS · 70 REs a · 161 Tick", {"L3 5", "open L3"}),
        ("10 SS · 101 Tick", {"L3 0", "open L3"}),
        ("10 SS · 11 SE · 101 Tick", set()),
        ("10 SS · 11 Crash · 101 Tick", set()),
    ],
)
def test_r5_a_stop_is_awaited_once_nothing_runs(text: str, expected: set[str]) -> None:
    assert said(check(trace(text))) == expected


@pytest.mark.requirement("004 L2")
def test_l2_an_initialisation_is_awaited() -> None:
    assert said(check(trace("10 IS[a] · 101 Tick"))) == {"L2 0", "open L2"}
    assert said(check(trace("10 IS[a] · 11 IEs[b] · 101 Tick"))) == {"L2 0", "open L2"}
    assert check(trace("10 IS[a] · 11 Crash · 101 Tick")) == []


# --- the bound ---


@pytest.mark.requirement("004 L1")
def test_l1_the_bound_itself_is_in_time() -> None:
    text = "init 10 [a] · 60 Due a · {} RS a"
    assert check(trace(text.format("150.006"))) == []
    assert said(check(trace(text.format("150.006001")))) == {"L1 2"}


@pytest.mark.requirement("001 Real-time bounds/2", "004 L1")
def test_l1_the_bound_grows_with_the_list() -> None:
    text = "init 10 [a,b] · 60 Due a · {} RS a"
    assert check(trace(text.format("150.012"))) == []
    assert said(check(trace(text.format("150.012001")))) == {"L1 2"}


def test_l1_the_bound_can_be_chosen() -> None:
    records = trace("init 10 [a] · 60 Due a · 65 RS a")
    assert check(records, lag=timedelta(seconds=5), per_task=timedelta(0)) == []
    assert said(check(records, lag=timedelta(seconds=4))) == {"L1 2"}


def test_l1_overlapping_freezes_count_once() -> None:
    freezes = "60 Freeze to 100 · 70 Freeze to 120 · 80 Freeze to 90 · 130 Freeze to 140"
    text = f"init 10 [a] · 60 Due a · {freezes} · {{}}"
    assert check(trace(text.format("220.006 RS a"))) == []
    assert said(check(trace(text.format("220.007 RS a")))) == {"L1 2"}


@pytest.mark.requirement("004 Liveness Axioms/1")
def test_l1_a_stop_discharges() -> None:
    assert check(trace("init 10 [a] · 60 Due a · stop 100 · 900 Tick")) == []
    assert said(check(trace("init 10 [a] · 60 Due a · stop 200 · 900 Tick"))) == {"L1 2"}


def test_l1_the_same_list_again_does_not_discharge() -> None:
    text = "init 10 [a] · 60 Due a · init 100 [a] · 160 RS a"
    assert said(check(trace(text))) == {"L1 2"}


# --- R6: identity by name ---


def test_r6_an_override_owes_nothing_for_the_past() -> None:
    text = "init 10 [a] · 60 Due a · init 121 [a'] · 900 Tick"
    assert check(trace(text, CRONS)) == []


def test_r6_an_override_cancels_the_retry() -> None:
    assert check(trace(f"{FAILED} · init 65 [a'] · 900 Tick", CRONS | {"a'": "40 * * * *"})) == []


def test_r6_an_override_boots_in_a_minute_that_matches() -> None:
    text = "init 10 [a] · init 90 [a'] · {} RS a"
    assert check(trace(text.format(92), CRONS), pulses="made") == []
    assert check(trace(text.format(150), CRONS), pulses="made") == []
    late = "init 10 [a] · init 125 [a'] · 127 RS a"
    crons = CRONS | {"a": "30 * * * *"}
    assert "S1" in blamed(check(trace(late, crons), pulses="made"))


def test_r6_an_override_waits_for_the_run_in_flight() -> None:
    text = "init 10 [a] · 61 RS a · init 70 [a'] · {} · 130 REs a · 131 RS a"
    crons = {"a": "1 * * * *", "a'": "2 * * * *"}
    assert check(trace(text.format("125 Tick"), crons)) == []
    assert blamed(check(trace(text.format("125 RS a"), crons))) == {"S1": "scheduler"}


@pytest.mark.parametrize("change", ["init 70 [a']", "init 70 [b] · init 72 [a]"])
@pytest.mark.parametrize(
    "end", ["80 REf a · 900 Tick", "80 Crash · init 81 [a'] · 900 Tick", "80 REs a · 900 Tick"]
)
def test_what_a_run_does_after_its_task_changed_is_of_no_consequence(change: str, end: str) -> None:
    if "[a]" in change:
        end = end.replace("a'", "a")
    text = f"init 10 [a] · 60 Due a · 61 RS a · {change} · {end}"
    crons = {"a": "1 * * * *", "a'": "50 * * * *", "b": "50 * * * *"}
    records = [each for each in trace(text, crons) if each["event"] != "Due"]
    assert check(records) == []


# --- never twice for one minute (docs/semantics.md, "New tasks") ---


def test_a_task_back_in_the_minute_of_its_success_need_not_start() -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 62 REs a · init 65 [b] · init 70 [a] · {}"
    assert check(trace(text.format("900 Tick"))) == []
    assert said(check(trace(text.format("72 RS a · 73 REs a")))) == {"S2 9"}


def test_a_task_back_in_the_minute_of_its_failure_is_owed() -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 62 REf a · init 65 [b] · init 70 [a] · {}"
    assert said(check(trace(text.format("900 Tick")))) == {"L1 8", "open a"}
    assert check(trace(text.format("72 RS a · 73 REs a"))) == []


def test_a_task_back_in_a_later_minute_is_owed_again() -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 62 REs a · init 65 [b] · 120 Due a · init 130 [a]"
    assert said(check(trace(f"{text} · 900 Tick"))) == {"L1 9", "open a"}
    assert check(trace(f"{text} · 132 RS a · 133 REs a")) == []


def test_a_due_later_in_the_excused_minute_counts() -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 62 REs a · init 65 [b] · init 70 [a] · 120 Due a"
    assert said(check(trace(f"{text} · 211 Tick"))) == {"L1 9", "open a"}


def test_an_override_in_the_minute_of_a_success_does_not_start() -> None:
    text = "init 10 [a] · 61 RS a · 62 REs a · init 65 [a'] · {}"
    crons = {"a": "1 * * * *", "a'": "1,50 * * * *"}
    assert check(trace(text.format("900 Tick"), crons)) == []
    assert said(check(trace(text.format("72 RS a · 73 REs a"), crons))) == {"S1 7", "S2 7"}


def test_an_override_after_a_success_may_boot_in_a_later_minute() -> None:
    text = "init 10 [a] · 61 RS a · 62 REs a · init 130 [a'] · 132 RS a · 133 REs a"
    assert check(trace(text, {"a": "1 * * * *", "a'": "2 * * * *"})) == []


# --- R8, and positions that should not be ---


@pytest.mark.requirement("004 Stateful/1")
def test_r8_a_first_coming_wins_over_a_pulse_at_its_position() -> None:
    records = trace(f"{FAILED} · init 65 [b] · 362 RetryDue a + IEs[a] · 400 Tick")
    assert check(records) == []
    assert said(check(records, "letter")) == {"open a"}


def test_the_order_within_a_position_says_nothing() -> None:
    records = trace("init 10 [a] · 60 RS a + Due a · 61 REs a")
    assert said(check(records)) == {"S1 2"}


# --- R10: what was handed to a worker ---


def _handed(text: str, task: str = "a", policy: str = "coalesce") -> list[dict[str, object]]:
    records = trace(text)
    for record in records:
        if record.get("task") == task and record["event"] in ("RS", "REs", "REf"):
            record["handed"] = True
        for each in record.get("registrations", ()):
            each["overlap_policy"] = policy
    return records


OUTLIVED = "init 10 [a] · 60 Due a · 61 RS a · 65 SS · 66 SE · 90 REs a"
CRASHED = "init 10 [a] · 60 Due a · 61 RS a · 65 Crash · 70 REs a · init 80 [a] · 600 Tick"


@pytest.mark.parametrize("policy", ["coalesce", "allow"])
def test_r10_a_stop_does_not_wait_for_what_a_worker_calls(policy: str) -> None:
    assert check(_handed(OUTLIVED, policy=policy)) == []
    assert said(check(_handed(OUTLIVED, task="b", policy=policy))) == {"S3 5"}


def test_r10_it_waits_for_its_own_beside_it() -> None:
    text = "init 10 [a,b] · 60 Due a + Due b · 61 RS a · 62 RS b · 65 SS · 66 SE · 90 REs a"
    assert said(check(_handed(text))) == {"S3 6"}
    assert [each.task for each in check(_handed(text))] == ["b"]


def test_r10_nor_is_it_excused_by_it() -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 65 SS · 600 Tick"
    assert said(check(_handed(text))) == {"L3 4", "open L3"}
    assert check(trace(text)) == []


def test_r10_a_crash_leaves_it_alone() -> None:
    assert check(_handed(CRASHED)) == []
    assert said(check(trace(CRASHED))) >= {"EA6 5"}


def test_r10_it_is_one_at_a_time_all_the_same() -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 65 Crash · init 70 [a] · 72 RS a · 80 REs a"
    assert "S1 7" in said(check(_handed(text)))
    assert check(trace(text)) == []


def test_r10_its_success_counts_for_its_occurrence() -> None:
    text = CRASHED.replace("600 Tick", "82 RS a · 83 REs a")
    assert said(check(_handed(text))) == {"S1 8", "S2 8"}


def test_r10_what_follows_it_is_the_schedulers_own_again() -> None:
    first = "init 10 [a] · 60 Due a · 61 RS a · 62 REs a · "
    records = trace(
        first + "120 Due a · 121 RS a · 125 Crash · init 130 [a] · 131 RS a · 132 REs a"
    )
    for record in [each for each in records if each.get("task") == "a"][:3]:
        record["handed"] = True
    assert check(records) == []


# --- what is not governed ---


def _with_policy(text: str, policy: str) -> list[dict[str, object]]:
    records = trace(text, {"a": "1 * * * *"})
    for record in records:
        for entry in record.get("registrations", ()):
            entry["overlap_policy"] = policy
    return records


@pytest.mark.parametrize("policy", ["skip", "allow", "enqueue", "cancel_previous"])
def test_the_theory_governs_coalesce_only(policy: str) -> None:
    records = _with_policy("init 10 [a] · 20 RS a · 21 RS a · 22 REf a · 900 Tick", policy)
    verdict = judge(records)
    assert verdict.ok
    assert (verdict.ungoverned, verdict.starts, verdict.checked_starts) == (("a",), 2, 0)
    governed = judge(_with_policy("init 10 [a] · 20 RS a", "coalesce"))
    assert (governed.ok, governed.starts, governed.checked_starts) == (False, 1, 1)


def test_a_policy_may_change_with_everything_else_preserved() -> None:
    records = _with_policy("init 10 [a] · init 20 [a] · 30 RS a", "skip")
    assert check(records) == []
    records[3]["registrations"][0]["overlap_policy"] = "coalesce"  # type: ignore[index]
    assert said(check(records)) == {"S1 4"}


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("30 SS · 31 REs a · 32 REs a · 33 SE", set()),
        ("30 SS · 31 REs a · 33 SE", {"S3 6"}),
        ("30 SS · 31 REs a · 900 Tick", set()),
        ("30 SS · 31 REs a · 32 REs a · 900 Tick", {"L3 6", "open L3"}),
        ("29 Crash · 30 SS · 31 SE", set()),
    ],
)
def test_a_stop_waits_for_runs_that_are_not_governed(end: str, expected: set[str]) -> None:
    records = _with_policy(f"init 10 [a] · 20 RS a · 21 RS a · {end}", "allow")
    assert said(check(records)) == expected


# --- what is told ---


def test_a_violation_says_which_parts_of_the_obligation_held() -> None:
    (violation,) = check(trace("init 10 [a] · 60 Due a · 61 RS a · 62 REs a · 65 RS a"))
    assert violation.mode == "repaired"
    for part in ("Active true", "Registered true", "DuePending false", "BootDuePending false"):
        assert part in violation.explanation
    assert "last change: RS at 2024-01-01 00:01:01.000000 (position 3)" in violation.explanation


def test_the_worst_latency_is_that_of_the_slowest_start() -> None:
    text = "init 10 [a,b] · 60 Due a + Due b · 62 RS a · 65 RS b · 66 REs a · 67 REs b"
    assert judge(trace(text)).worst_start_latency == timedelta(seconds=5)
    assert judge(trace("init 10 [a]")).worst_start_latency is None


def test_violations_come_in_the_order_of_the_trace() -> None:
    text = "init 10 [a,b] · 20 RS b · 60 Due a · 70 RS b · 300 Tick"
    assert [v.position for v in check(trace(text))] == [2, 3, 3, 4]


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="mode must be repaired"):
        check([], "strict")  # type: ignore[arg-type]


def test_an_empty_trace_is_fine() -> None:
    assert check([]) == []


def test_a_task_taken_off_the_list_is_owed_nothing_any_more() -> None:
    text = "init 10 [a,b] · 60 Due a + Due b · 61 RS b · init 70 [b] · 300 Tick"
    assert check(trace(text)) == []
    assert said(check(trace(text.replace("[b]", "[a,b]")))) == {"L1 2", "open a"}
