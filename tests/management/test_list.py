"""``cron list``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.management.cli.table import columns
from django_declarative_cron.models import ScheduledTask, SchedulerInstance
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import ManualClock, Simulation

from ..timezones import local_time
from .conftest import DELAY, Cron

YEARLY = "0 0 1 1 *"


def _entry(name: str, cron: str, zone: str = "UTC", **keys: Any) -> dict[str, Any]:
    callback = "tests.management.callbacks.nothing"
    return {"name": name, "cron": cron, "timezone": zone, "callback": callback} | {
        "retry_delay": DELAY,
        **keys,
    }


@pytest.fixture
def crowd(sim: Simulation) -> Simulation:
    """One task of each status but broken, two hours after the start."""
    sim.initialize(
        [
            ("daily", "0 7 * * *", sim.job(), DELAY),
            _entry("berlin", "30 12 * * *", "Europe/Berlin"),
            ("failing", "0 11 * * *", sim.job(outcomes=["fail"]), timedelta(hours=3)),
            ("long", "0 11 * * *", sim.job(duration=timedelta(hours=5)), DELAY),
            ("paused", "0 11 * * *", sim.job(), DELAY),
            ("resting", "0 11 * * *", sim.job(), DELAY),
            ("late", "15 12 * * *", sim.job(), DELAY),
        ]
    )
    act = Act(author="an operator", at=sim.now)
    operator_actions.pause(["paused"], act)
    operator_actions.pause(["resting"], act, until=datetime(2024, 1, 3, tzinfo=UTC))
    sim.advance_to("2024-01-01T12:00:30Z")
    sim.clock.advance(datetime(2024, 1, 1, 12, 17, tzinfo=UTC))
    SchedulerInstance.objects.update(heartbeat_at=sim.now)
    return sim


def test_before_any_scheduler_it_says_what_to_do(cron: Cron, sim: Simulation) -> None:
    answer = cron("list", clock=sim.clock)
    assert answer.code == 0
    assert "No scheduler of deployment 'default' has registered a task yet." in answer.out
    assert "python manage.py runscheduler" in answer.out


def test_a_scheduler_without_tasks_is_something_else(cron: Cron, sim: Simulation) -> None:
    sim.initialize([])
    assert cron("list", clock=sim.clock).err == "0 tasks.\n"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["l*"], ["late", "long"]),
        (["late", "daily"], ["late", "daily"]),
        (["--status", "overdue", "--status", "paused-until"], ["late", "resting"]),
        (["--status", "running", "l*"], ["long"]),
        (["--status", "paused", "l*"], []),
    ],
)
def test_names_and_statuses_narrow_the_list(
    cron: Cron, crowd: Simulation, words: list[str], names: list[str]
) -> None:
    data = cron("list", *words, "--format", "json", clock=crowd.clock).data
    assert [task["name"] for task in data["tasks"]] == names


def test_a_tag_narrows_the_list(cron: Cron, sim: Simulation) -> None:
    sim.initialize([_entry("a", YEARLY, tags=["money"]), _entry("b", YEARLY, tags=["mail"])])
    (task,) = cron("list", "--tag", "money", "--format", "json", clock=sim.clock).data["tasks"]
    assert (task["name"], task["tags"]) == ("a", ["money"])
    assert "tags         money" in cron("show", "a", clock=sim.clock).lines


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["zzz*"], 1, "No task is called 'zzz*'. Patterns are such as 'report-*'."),
        (["late", "zzz*"], 1, "No task is called 'zzz*'. Patterns are such as 'report-*'."),
        (["--timezone", "Europe/Berln"], 2, 'did you mean "Europe/Berlin"?'),
    ],
)
def test_nonsense_is_refused_with_a_way_on(
    cron: Cron, crowd: Simulation, words: list[str], code: int, error: str
) -> None:
    answer = cron("list", *words, clock=crowd.clock)
    assert (answer.code, answer.out) == (code, "")
    assert error in answer.err


def test_words_of_a_status_are_read_however_they_are_typed(cron: Cron, crowd: Simulation) -> None:
    assert "invalid choice: 'pausd'" in cron("list", "--status", "pausd", clock=crowd.clock).err
    for typed in ("paused until", "paused_until", "paused-until"):
        answer = cron("list", "--status", typed, clock=crowd.clock)
        assert [line.split()[3] for line in answer.lines[1:]] == ["resting"]


def test_watching_refreshes_until_ctrl_c(
    cron: Cron, crowd: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def wait(event: threading.Event, seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(crowd.clock, "wait", wait)
    answer = cron("list", "late", "--watch", clock=crowd.clock)
    assert (answer.code, waits) == (0, [2.0, 2.0, 2.0])
    assert answer.err.count("1 task: 1 overdue.") == 3


def test_what_ran_before_its_schedule_changed_says_so(cron: Cron, sim: Simulation) -> None:
    sim.initialize([_entry("berlin", "30 11 * * *")])
    sim.advance_to("2024-01-01T12:00:30Z")
    sim.initialize([_entry("berlin", "0 13 * * *")])
    assert "not since its schedule changed" in cron("list", clock=sim.clock).out
    assert "not since its schedule changed" in cron("show", "berlin", clock=sim.clock).out


def test_a_retry_waits_for_the_end_of_a_pause(cron: Cron, crowd: Simulation) -> None:
    operator_actions.pause(["failing"], Act(author="an operator", at=crowd.now))
    assert "retry when resumed" in cron("list", clock=crowd.clock).out


def test_a_retry_that_the_next_occurrence_preempts_is_not_announced(
    cron: Cron, sim: Simulation
) -> None:
    job = sim.job(outcomes=["fail"])
    sim.initialize([("a", "0,15,30,45 * * * *", job, timedelta(minutes=26))])
    sim.advance_to("2024-01-01T10:50:00Z")
    SchedulerInstance.objects.update(heartbeat_at=sim.now)
    answer = cron("list", clock=sim.clock)
    assert local_time("2024-01-01 11:00") in answer.out
    assert "11:11" not in answer.out
    assert "retry in" not in answer.out
    shown = cron("show", "a", clock=sim.clock)
    assert "11:11" not in shown.out
    told = cron("explain", "a", clock=sim.clock)
    words = " ".join(told.lines)
    assert (
        f"its next occurrence at {local_time('2024-01-01 11:00')} comes before its retry." in words
    )
    [task] = cron("list", "--format", "json", clock=sim.clock).data["tasks"]
    assert (task["next_run_at"], task["next_run_reason"]) == ("2024-01-01T11:00:00Z", "due")


def test_a_run_whose_process_is_gone_is_not_called_running(cron: Cron, crowd: Simulation) -> None:
    later = ManualClock(crowd.now + timedelta(minutes=3))
    assert "↯ interrupted   long" in cron("list", clock=later).out
    gone = f"the process is gone since {local_time('2024-01-01 12:17')}."
    for command in ("explain", "show"):
        assert gone in " ".join(cron(command, "long", clock=later).out.split())
    assert "is running" not in cron("explain", "long", clock=later).out
    [run] = cron("history", "long", "--format", "json", clock=later).data["runs"]
    assert (run["outcome"], run["finished_at"]) == ("interrupted", "2024-01-01T12:17:00Z")
    assert "interrupted" in cron("history", "long", clock=later).lines[1]


def test_a_request_is_shown(cron: Cron, crowd: Simulation) -> None:
    operator_actions.request_run(["long"], Act(author="an operator", at=crowd.now))
    assert "asked for now" in cron("list", clock=crowd.clock).out


def test_a_damaged_row_comes_first_with_its_reason(cron: Cron, crowd: Simulation) -> None:
    ScheduledTask.objects.filter(name="daily").update(cron="nonsense")
    ScheduledTask.objects.filter(name="long").update(broken_reason="cannot be called\x1b[31m")
    answer = cron("list", clock=crowd.clock)
    order = [line.split()[2] for line in answer.lines if line.startswith(("✖", "▲"))]
    assert order == ["late", "daily", "long"]
    assert "'daily' is broken: Invalid cron expression" in answer.err
    assert "'long' is broken: cannot be called\\x1b[31m" in answer.err


def test_json_before_any_scheduler(cron: Cron, sim: Simulation) -> None:
    data = cron("list", "--format", "json", clock=sim.clock).data
    assert (data["initialized_at"], data["tasks"]) == (None, [])


def test_another_deployment_is_not_ours(cron: Cron, crowd: Simulation, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"DEPLOYMENT": "other"}
    assert "deployment 'other'" in cron("list", clock=crowd.clock).out


@pytest.mark.usefixtures("eighty_columns")
def test_a_table_fits_80_columns_whatever_the_names(cron: Cron, sim: Simulation) -> None:
    long_name = "n" * 255
    sim.initialize(
        [
            _entry(long_name, YEARLY, "America/Argentina/ComodRivadavia"),
            ("名前" * 40, ",".join(map(str, range(60))) + " * * * *", sim.job(), DELAY),
        ]
    )
    answer = cron("list", clock=sim.clock, is_terminal=True)
    assert max(map(columns, answer.lines)) <= 80
    for wide in ("--wide", "--no-color"):
        whole = cron("list", wide, clock=sim.clock, is_terminal=wide == "--wide").out
        assert long_name in whole
        assert "名前" * 40 in whole


def test_lists_of_any_length_take_as_many_queries(
    cron: Cron, sim: Simulation, django_assert_num_queries: Callable[..., Any]
) -> None:
    sim.initialize([(f"t{number}", YEARLY, sim.job(), DELAY) for number in range(50)])
    # Three for tables and migrations, one for the deployment, one for the tasks, one for paces.
    with django_assert_num_queries(7):
        cron("list", clock=sim.clock)


def test_a_task_that_may_end_its_process_is_named_with_the_count(
    cron: Cron, crowd: Simulation
) -> None:
    ScheduledTask.objects.filter(name="daily").update(interruptions=2)
    assert "ended with it" not in cron("list", clock=crowd.clock).err
    ScheduledTask.objects.filter(name="daily").update(interruptions=4)
    line = "'daily' may end the process it runs in: its last 4 runs ended with it."
    assert line in cron("list", clock=crowd.clock).err.splitlines()
    found = cron("list", "--format", "json", clock=crowd.clock).data["tasks"]
    assert {each["name"]: each["interruptions"] for each in found}["daily"] == 4


def test_a_task_that_takes_longer_than_it_may_is_named(cron: Cron, sim: Simulation) -> None:
    sim.initialize([("a", "* * * * *", sim.job(duration=timedelta(seconds=90)), DELAY)])
    sim.advance_to("2024-01-01T10:09:30Z")
    told = cron("list", clock=sim.clock).err
    assert "'a' is too slow: its last 6 runs took 1 min 30 s on average, and" in told
