"""Tasks of a simulation that come as callers over HTTP register them."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from django_declarative_cron.exceptions import DeclarativeCronError
from django_declarative_cron.management.commands.cron import Command
from django_declarative_cron.models import Outcome, TaskRun
from django_declarative_cron.testing import Simulation, post_task

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]
TASK = {"name": "sync", "expression": "0 * * * *", "job_template": {"type": "partner.sync"}}


@pytest.fixture
def sim(settings: pytest.FixtureRequest) -> Simulation:
    settings.DECLARATIVE_CRON = {"EXTERNAL_WORKERS": True}  # type: ignore[attr-defined]
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
        ({"callback": "os.system"}, "callback cannot be said over HTTP"),
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
