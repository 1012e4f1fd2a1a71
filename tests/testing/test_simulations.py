"""Simulations in tests of projects: with libraries that move the clock, and tasks over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.utils import timezone
from freezegun import freeze_time
from pytest_django import Settings as SettingsWrapper

from django_declarative_cron.exceptions import DeclarativeCronError
from django_declarative_cron.management.commands.cron import Command
from django_declarative_cron.models import Outcome, TaskRun
from django_declarative_cron.testing import (
    Simulation,
    assert_fires,
    assert_schedule_snapshot,
    post_task,
)

pytestmark = pytest.mark.django_db

MORNING = datetime(2027, 1, 24, 6, 30, tzinfo=UTC)
CALLBACK = "tests.callables.jobs.send_mail"
DAILY = [("daily", "0 7 * * *", CALLBACK, timedelta(minutes=5))]

Travel = Callable[[datetime], AbstractContextManager[Any]]


@pytest.fixture(
    params=[freeze_time, lambda at: time_machine.travel(at, tick=False)],
    ids=["freezegun", "time-machine"],
)
def travel(request: pytest.FixtureRequest) -> Travel:
    return request.param


def test_now_is_where_the_clock_is(travel: Travel, tmp_path: Path) -> None:
    path, out = tmp_path / "schedule.txt", StringIO()
    with travel(MORNING):
        assert_schedule_snapshot(path, rewrite=True, tasks=DAILY)
        call_command("cron", "next", "0 7 * * *", "-n", "1", stdout=out)
        # What is declared does not depend on the day on which it is asked about.
        assert_fires(
            "daily", between=("2027-03-22", "2027-03-23"), at=["2027-03-22 07:00"], tasks=DAILY
        )
    # A year begins with its month, and is compared with what is declared on any later day.
    assert "# From 2027-01-01 up to 2028-01-01.\n" in path.read_text()
    with travel(MORNING.replace(year=2029)):
        assert_schedule_snapshot(path, tasks=DAILY)
    assert "Sun 2027-01-24 07:00" in out.getvalue()
    assert "in 30 min" in out.getvalue()


def test_a_simulation_goes_its_own_way_under_a_frozen_clock(travel: Travel) -> None:
    with travel(datetime(2020, 2, 2, tzinfo=UTC)):
        sim = Simulation("2027-01-01T06:30Z")
        sim.initialize(DAILY)
        sim.advance_to("2027-01-01T07:30Z")
        assert [f"{at:%Y %H:%M}" for at in sim.starts("daily")] == ["2027 07:00"]


@pytest.mark.real_clock
def test_callbacks_of_a_simulation_may_see_its_time(travel: Travel) -> None:
    seen = []
    sim = Simulation(MORNING, travel=travel)
    tasks = [("a", "0 * * * *", lambda: seen.append(timezone.now()), timedelta(minutes=5))]
    sim.initialize(tasks)
    sim.advance_to(MORNING + timedelta(hours=2))
    seven = MORNING + timedelta(minutes=30)
    assert [timezone.make_aware(at, UTC) if at.tzinfo is None else at for at in seen] == [
        seven,
        seven + timedelta(hours=1),
    ]
    assert abs(timezone.now().timestamp() - MORNING.timestamp()) > 3600


# --- tasks that are registered over HTTP ---

TASK = {"name": "sync", "expression": "0 * * * *", "job_template": {"type": "partner.sync"}}


@pytest.fixture
def sim(settings: SettingsWrapper, still_clock: None) -> Simulation:
    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True}
    made = Simulation(start="2024-01-01T10:30Z")
    made.initialize([])
    return made


def test_it_is_due_as_every_other_one(sim: Simulation) -> None:
    post_task(sim, TASK)
    sim.advance_to("2024-01-01T11:00:30Z")
    run = TaskRun.objects.get()
    assert (run.task_name, run.outcome, run.scheduled_for.hour) == ("sync", Outcome.WAITING, 11)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"callback": "os.system"}, "callback is not accepted over HTTP"),
        ({"expression": "61 * * * *"}, "61 * * * *"),
        ({"timezone": "Moon/Base"}, "Moon/Base"),
    ],
)
def test_what_a_caller_may_not_say_is_refused(
    sim: Simulation, more: dict[str, str], said: str
) -> None:
    with pytest.raises(DeclarativeCronError) as refused:
        post_task(sim, {**TASK, **more})
    assert said in refused.value.message


def test_the_judge_names_it_and_does_not_judge_it(sim: Simulation) -> None:
    post_task(sim, TASK)
    sim.advance_to("2024-01-01T11:00:30Z")
    out = StringIO()
    call_command(Command(), "verify", stdout=out)
    assert "Not checked, because they were registered over HTTP: 'sync'." in " ".join(
        out.getvalue().split()
    )
