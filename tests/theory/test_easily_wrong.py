"""What is easily done wrong: section 6 of the design, with the reason as the name of each case."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.theory import check, judge

from .notation import at, trace
from .said import said
from .test_examples import Mode, both_modes

RAN = "init 10 [a] · 60 Due a · 61 RS a · 62 REs a"
FAILED = "init 10 [a] · 60 Due a · 61 RS a · 62 REf a"
OWED = "init 10 [a] · 60 Due a"
# The tasks whose schedules are known.
KNOWN = {"a": "1 * * * *", "a'": "2 * * * *"}

CASES = {
    "1 S1 looks at the previous position": ("init 10 [a] · 60 Due a + RS a", "S1 2"),
    "1 and not at the previous instant": (f"{OWED} · 60 RS a", "ok"),
    "2 nothing starts after a stop started": (f"{OWED} · 61 SS · 61 RS a", "S1 4, open L3"),
    "3 a run that ends where it starts goes on": (
        f"{OWED} · 61 RS a + REs a · 62 Tick · 63 REs a",
        "EA3 3, S4 3",
        "EA3 3, S4 3, S4 5",
    ),
    "4 a due during the run frees the next success": (
        f"{OWED} · 61 RS a · 120 Due a · 130 REs a · 131 RS a · 132 REs a",
        "ok",
    ),
    "5 a due survives a run that began earlier": (
        f"{OWED} · 61 RS a · 120 Due a · 130 REs a",
        "open a",
    ),
    "6 what was due is owed after a crash": (
        f"{OWED} · 65 Crash · init 200 [a] · 202 RS a · 203 REs a",
        "ok",
    ),
    "6 what was due is owed after a stop": (
        f"{OWED} · stop 65 · init 200 [a] · 202 RS a · 203 REs a",
        "ok",
    ),
    "6 what falls due while nothing is active is owed": (
        f"{RAN} · 65 Crash · 120 Due a · init 200 [a] · 202 RS a · 203 REs a",
        "ok",
    ),
    "7 an override is no first coming": ("init 10 [a] · 60 Due a · init 70 [a'] · 80 RS a", "S1 5"),
    "7 a repeated list is no first coming": (f"{OWED} · init 100 [a] · 102 RS a", "ok"),
    "9 a minute ends where nothing is due": (
        "60 Due a · 120 Tick · init 125 [a] · 127 RS a",
        "S1 4",
    ),
    "9 a minute ends where nothing is told": ("60 Due a · init 125 [a] · 127 RS a", "S1 3"),
    "10 dues count for tasks that are not registered": (
        "60 Due a · init 70 [a] · 72 RS a · 73 REs a",
        "ok",
    ),
    "13 a restart within the minute is no first coming": (
        f"{RAN} · 65 Crash · init 66 [a] · 68 RS a",
        "S1 8",
    ),
    "14 old retry pulses count by the letter only": (
        f"{FAILED} · 120 Due a · 121 RS a · 122 REs a · 363 RS a · 364 REs a",
        "S2 9",
        "S1 9, S2 9",
    ),
    "16 an end after the stop is not forgiven": (
        f"{OWED} · 61 RS a · 65 SS · 66 SE · 66 REs a",
        "S3 5",
    ),
    "17 a crash that is not written down keeps the task running": (
        f"{OWED} · 61 RS a · init 80 [a] · 82 RS a",
        "S1 6",
    ),
    "17 a crash that is written down does not": (
        f"{OWED} · 61 RS a · 79 Crash · init 80 [a] · 82 RS a",
        "ok",
    ),
}


@pytest.mark.requirement(
    "004 S1", "004 S2", "004 S3", "004 Safety Axioms/2", "004 Liveness Axioms/1"
)
@both_modes
@pytest.mark.parametrize("name", CASES)
def test_a_trace_that_is_easily_misjudged(name: str, mode: Mode) -> None:
    text, *expected = CASES[name]
    wanted = expected[0 if mode == "letter" else -1]
    found = check(trace(text, KNOWN if "'" in text else None), mode)
    assert said(found) == {each for each in wanted.split(", ") if each != "ok"}


@both_modes
@pytest.mark.parametrize("event", ["70 IS[b]", "69 IS[b] · 70 IEf[b]"])
def test_8_only_an_accepted_list_is_registered(event: str, mode: Mode) -> None:
    of_the_old = check(trace(f"init 10 [a] · 60 Due a · {event} · 80 RS a"), mode)
    of_the_new = check(trace(f"init 10 [a] · 60 Due b · {event} · 80 RS b"), mode)
    assert "S1" not in {v.axiom for v in of_the_old}
    assert "S1" in {v.axiom for v in of_the_new}


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
