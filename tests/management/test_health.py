"""``cron health``: somebody has checked in, or who was the last."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.models import SchedulerInstance, SchedulerState
from django_declarative_cron.testing import ManualClock, Simulation

from .conftest import DELAY, HERE, Cron, run_child
from .test_foreground import Person

TASKS = [("hourly", "0 * * * *", f"{HERE}.nothing", DELAY)]


@pytest.fixture
def sim(db: None) -> Simulation:
    return Simulation(start="2024-01-01T10:00:30Z", instances=2)


@pytest.fixture
def led(sim: Simulation) -> Simulation:
    """One scheduler leads, and another stands by."""
    for each in range(2):
        sim[each].initialize(TASKS)
        sim[each].poll()
    return sim


def test_a_scheduler_that_has_checked_in_is_healthy(cron: Cron, led: Simulation) -> None:
    """P34."""
    answer = cron("health", clock=led.clock)
    assert answer.code == 0
    (line,) = " ".join(answer.lines).splitlines()
    assert line.startswith("Healthy: 2 schedulers: ")
    assert line.count("(leader, last heartbeat 0 s ago)") == 1
    assert line.count("(standby, last heartbeat 0 s ago)") == 1


def test_before_the_first_scheduler_it_is_unhealthy(cron: Cron, sim: Simulation) -> None:
    answer = cron("health", clock=sim.clock)
    assert answer.code == 1
    assert answer.err == "Unhealthy: no scheduler of deployment 'default' has ever checked in."


def test_silence_is_unhealthy_and_says_what_is_overdue(cron: Cron, led: Simulation) -> None:
    """P33."""
    later = ManualClock(led.clock.now() + timedelta(hours=1, minutes=2))
    answer = cron("health", clock=later)
    assert answer.code == 1
    assert "is running: no heartbeat in the last 30 s; the last was of " in answer.err
    assert answer.err.endswith("1 h 2 min ago. 1 task overdue.")


def test_a_stop_is_told_apart_from_silence(cron: Cron, led: Simulation) -> None:
    led[0].stop()
    led[1].stop()
    answer = cron("health", clock=led.clock)
    assert answer.code == 1
    assert answer.err.endswith("0 s ago, and it has stopped.")


def test_a_process_that_only_its_watchdog_vouches_for_is_unhealthy(
    cron: Cron, led: Simulation
) -> None:
    SchedulerInstance.objects.update(mute_since=led.clock.now() - timedelta(minutes=5))
    answer = cron("health", "--local", clock=led.clock)
    assert answer.code == 1
    assert "5 min ago" in answer.err


def test_a_run_in_the_foreground_is_no_scheduler(cron: Cron, led: Simulation) -> None:
    led[0].stop()
    led[1].stop()
    led.jump_to("2024-01-01T11:02:30Z")
    person = Person(led)
    start = person.start("hourly")
    answer = cron("health", "--format", "json", clock=led.clock)
    assert answer.code == 1
    assert answer.data["schedulers"] == []
    assert answer.data["answer"].endswith("1 h 2 min ago, and it has stopped.")
    told = cron("explain", "hourly", "--at", "2024-01-01T11:00Z", clock=led.clock)
    assert "because no scheduler is at work" in " ".join(told.lines)
    person.end(start)
    told = cron("health", clock=led.clock)
    assert told.err.endswith("1 h 2 min ago, and it has stopped. 1 task overdue.")


def test_a_scheduler_that_stops_or_has_an_older_set_does_not_stand_by(
    cron: Cron, led: Simulation
) -> None:
    leader = SchedulerState.objects.get().leader
    other = SchedulerInstance.objects.exclude(pk=leader.pk if leader else None)
    other.update(digest="older")
    assert "(outdated registration set, last heartbeat" in " ".join(
        cron("health", clock=led.clock).lines
    )
    other.update(stop_requested_at=led.now)
    assert "(stopping, last heartbeat" in " ".join(cron("health", clock=led.clock).lines)


def test_runs_left_in_flight_are_said(cron: Cron, led: Simulation) -> None:
    led[0].crash()
    led[1].crash()
    answer = cron("health", clock=led.clock)
    assert answer.code == 1
    assert answer.err.endswith(", which left with unfinished runs.")


def test_a_scheduler_that_lets_tasks_wait_is_unhealthy(
    cron: Cron, led: Simulation, declare: Any
) -> None:
    hangs = ManualClock(led.clock.now() + timedelta(hours=1, minutes=2))
    SchedulerInstance.objects.update(heartbeat_at=hangs.now())
    answer = cron("health", clock=hangs)
    assert answer.code == 1
    assert "1 task overdue, despite 2 schedulers" in answer.err
    # A probe restarts what it probes: that is not to be done for the fault of another.
    assert cron("health", "--local", clock=hangs).code == 0


@pytest.mark.parametrize(("limit", "code"), [("9.9", 1), ("10.1", 0)])
def test_the_age_that_is_allowed_may_be_given(
    cron: Cron, led: Simulation, limit: str, code: int
) -> None:
    later = ManualClock(led.clock.now() + timedelta(seconds=10))
    assert cron("health", "--max-age", limit, clock=later).code == code


@pytest.mark.parametrize(("lease", "code"), [(15, 1), (120, 0)])
def test_a_longer_lease_allows_a_longer_silence(
    cron: Cron, led: Simulation, settings: Any, lease: int, code: int
) -> None:
    settings.DECLARATIVE_CRON = {"LEASE": lease}
    later = ManualClock(led.clock.now() + timedelta(seconds=90))
    assert cron("health", clock=later).code == code


def test_a_probe_may_ask_for_its_own_host_and_process(cron: Cron, led: Simulation) -> None:
    mine, other = SchedulerInstance.objects.order_by("id")
    SchedulerInstance.objects.filter(id=mine.id).update(host=socket.gethostname(), pid=7)
    SchedulerInstance.objects.filter(id=other.id).update(host="elsewhere", pid=8)

    def ask(*words: str) -> tuple[int, int]:
        answer = cron("health", *words, "--format", "json", clock=led.clock)
        return answer.code, len(answer.data["schedulers"])

    assert ask() == (0, 2)
    assert ask("--local") == (0, 1)
    assert ask("--pid", "8") == (0, 1)
    assert ask("--local", "--pid", "8") == (1, 0)
    answer = cron("health", "--local", "--pid", "8", clock=led.clock)
    assert "is running on this host as process 8" in answer.err


def test_the_answer_for_programs(cron: Cron, led: Simulation) -> None:
    answer = cron("health", "--format", "json", clock=led.clock)
    data = answer.data
    assert (answer.code, data["healthy"], data["overdue"], data["max_age"]) == (0, True, 0, 30.0)
    assert sorted(each["leads"] for each in data["schedulers"]) == [False, True]
    led[0].crash()
    led[1].crash()
    led.jump_to("2024-01-01T11:05Z")
    answer = cron("health", "--format", "json", clock=led.clock)
    assert (answer.code, answer.data["healthy"], answer.data["overdue"]) == (1, False, 1)


def test_it_takes_four_queries_at_most(
    cron: Cron, led: Simulation, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(4):
        cron("health", clock=led.clock)


@pytest.mark.slow
def test_before_migrate_it_names_the_command(project_environment: dict[str, str]) -> None:
    done = run_child("cron", "health", env=project_environment)
    assert done.returncode == 2
    assert "python manage.py migrate" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite is always there")
def test_a_database_that_is_away_is_unhealthy(project_environment: dict[str, str]) -> None:
    away = {"DDC_TEST_DATABASE": "postgres", "DATABASE_URL": "postgres://x@127.0.0.1:1/x"}
    done = run_child("cron", "health", env={**project_environment, **away})
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
