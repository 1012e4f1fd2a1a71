"""A run that takes three times its interval, under each rule of overlap: how often, how many."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from django_declarative_cron.core.events import Event, TaskBacklogGrowing
from django_declarative_cron.testing import Simulation

from .conftest import Started, utc
from .test_overlaps import entry, greatest_overlap

pytestmark = pytest.mark.alike

RUN = timedelta(seconds=190)


@pytest.fixture
def ten_minutes(simulation: Started) -> Simulation:
    return simulation("10:00:00")


def _lived_through(sim: Simulation, policy: str) -> Counter[str]:
    sim.initialize([entry(sim.job(["ok"], RUN), policy, cron="* * * * *")])
    sim.advance_to("2024-01-01T10:09:59Z", at_least_every=timedelta(minutes=5))
    return Counter(run.reason if run.outcome == "skipped" else "begun" for run in sim.runs("t"))


def test_p53_skip_runs_three_times_and_accounts_for_seven(ten_minutes: Simulation) -> None:
    assert _lived_through(ten_minutes, "skip") == {"begun": 3, "overlap_skip": 7}
    assert ten_minutes.starts("t") == [utc("10:00"), utc("10:04"), utc("10:08")]


def test_p53_allow_runs_each_time_four_at_once_at_most(ten_minutes: Simulation) -> None:
    assert _lived_through(ten_minutes, "allow") == {"begun": 10}
    assert ten_minutes.starts("t") == [utc(f"10:{minute:02}") for minute in range(10)]
    assert greatest_overlap(ten_minutes) == 4


def test_p53_enqueue_runs_one_after_the_other_and_warns_from_the_third_on(
    ten_minutes: Simulation, told: list[Event]
) -> None:
    assert _lived_through(ten_minutes, "enqueue") == {"begun": 10}
    # The first minute is on time, each other one begins where the one before ended.
    assert ten_minutes.starts("t") == [utc("10:00") + number * RUN for number in range(4)]
    assert [run.outcome for run in ten_minutes.runs("t")][4:] == ["waiting"] * 6
    assert greatest_overlap(ten_minutes) == 1
    piled_up = [event for event in told if isinstance(event, TaskBacklogGrowing)]
    assert (piled_up[0].at, piled_up[0].waiting) == (utc("10:03"), 3)


def test_p53_cancel_previous_asks_each_of_them_at_the_next_occurrence(
    ten_minutes: Simulation,
) -> None:
    assert _lived_through(ten_minutes, "cancel_previous") == {"begun": 10}
    runs = ten_minutes.runs("t")
    assert [run.cancel_requested_at for run in runs] == [
        *(utc(f"10:{minute:02}") for minute in range(1, 10)),
        None,
    ]
    # A virtual run does not hear that it is asked: it ends when it would have, and too late.
    assert {run.outcome for run in runs if run.finished_at is not None} == {"cancelled"}
