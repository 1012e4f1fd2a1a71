"""Tasks registered over HTTP: stored as rows, run by every scheduler, independent of settings."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from django_declarative_cron import conf, handlers
from django_declarative_cron.http import serializers
from django_declarative_cron.models import Outcome, ScheduledTask, TaskOverride, TaskRun
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.scheduler import Polling
from django_declarative_cron.store import operator_actions, posted_tasks
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.store.posted_tasks import OwnedError
from django_declarative_cron.store.rows import NotRegisteredError
from django_declarative_cron.testing import Simulation

from .reports import tasks as reports

Simulate = Callable[..., Simulation]
HOURLY, YEARLY = "0 * * * *", "0 0 1 1 *"
FIVE_MINUTES = timedelta(minutes=5)
SECOND = timedelta(seconds=1)


def post(sim: Simulation, name: str = "daily", **keys: Any) -> tuple[ScheduledTask, bool]:
    entry = {"name": name, "cron": HOURLY, "type": "report.generate", "args": [7], **keys}
    declaration, problems = conf.posted(entry)
    assert declaration is not None, problems
    return posted_tasks.post(declaration, sim.now)


def act(sim: Simulation) -> Act:
    return Act(author="reporter", at=sim.now)


def at(hour: int) -> datetime:
    return datetime(2024, 1, 1, hour, tzinfo=UTC)


def row() -> ScheduledTask:
    return ScheduledTask.objects.get(name="daily")


def outcomes() -> list[tuple[str, str]]:
    runs = TaskRun.objects.filter(task_name="daily").order_by("id")
    return list(runs.values_list("outcome", "reason"))


def declare(sim: Simulation, name: str = "a", cron: str = YEARLY) -> None:
    sim.initialize([(name, cron, sim.job(), FIVE_MINUTES)])


@pytest.fixture
def sim(simulation: Simulate, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """Return a scheduler of an hourly task ``a`` of settings, at 10:59:50, beside a posted one."""
    sim = simulation("10:59:50")
    post(sim)
    declare(sim, cron=HOURLY)
    monkeypatch.setattr(posted_tasks, "_understood", {})
    return sim


def test_a_running_scheduler_picks_a_new_task_up_within_a_second(
    simulation: Simulate, calls: list[Any]
) -> None:
    sim = simulation("10:59:58")
    declare(sim)
    new, is_new = post(sim)
    assert is_new
    assert (new.origin, new.next_run_at) == ("http", at(11))
    sim.advance_to("2024-01-01T11:00:01Z")
    assert sim.starts("daily") == [at(11)]
    assert calls == [(7,)]
    assert TaskRun.objects.get(task_name="daily").origin == "http"


@pytest.mark.slow
def test_a_scheduler_without_settings_runs_registered_tasks(
    simulation: Simulate, calls: list[Any]
) -> None:
    sim = simulation("10:59:50")
    sim.initialize([])
    assert sim[0].scheduler.polling is Polling.INACTIVE
    post(sim)
    sim.advance_to("2024-01-01T11:00:01Z", at_least_every=SECOND)
    sim.advance_to("2024-01-01T12:00:01Z", at_least_every=FIVE_MINUTES)
    assert sim.starts("daily") == [at(11), at(12)]
    assert sim[0].scheduler.polling is Polling.ACTIVE
    posted_tasks.remove("daily", act(sim))
    sim.advance_to("2024-01-01T12:00:05Z", at_least_every=SECOND)
    assert sim[0].scheduler.polling is Polling.INACTIVE


def test_a_registration_set_leaves_it_alone(sim: Simulation) -> None:
    # It was registered before the first scheduler started.
    sim.advance_to("2024-01-01T11:30:00Z")
    declare(sim, "b", HOURLY)
    sim.initialize([])
    assert set(ScheduledTask.objects.values_list("name", "run_count")) == {("daily", 1)}
    sim.advance_to("2024-01-01T12:00:01Z", at_least_every=FIVE_MINUTES)
    assert sim.starts("daily") == [at(11), at(12)]


def test_registering_an_equal_task_changes_nothing(simulation: Simulate) -> None:
    sim = simulation("10:10:30")
    first, _ = post(sim)
    sim.initialize([])
    sim.advance_to("2024-01-01T10:20:00Z")
    second, is_new = post(sim)
    assert not is_new
    assert second.registered_at == first.registered_at == second.created_at


def test_another_expression_is_an_override_that_keeps_count_and_first_registration(
    sim: Simulation,
) -> None:
    created = row().created_at
    sim.advance_to("2024-01-01T11:30:00Z")
    again, _ = post(sim, cron="0  * * * *")
    assert again.registered_at == sim.now
    assert (again.created_at, again.run_count) == (created, 1)
    assert (again.last_attempt_at, again.next_run_at) == (None, at(12))


def test_other_arguments_keep_the_state(sim: Simulation, calls: list[Any]) -> None:
    sim.advance_to("2024-01-01T11:30:00Z")
    again, _ = post(sim, args=[8])
    assert again.last_attempt_at == at(11)
    sim.advance_to("2024-01-01T12:00:01Z")
    assert calls == [(7,), (8,)]


def test_a_disabled_task_does_not_run_and_says_so(sim: Simulation) -> None:
    off = posted_tasks.switch("daily", False, act(sim))
    assert (off.enabled, off.next_run_at) == (False, None)
    sim.advance_to("2024-01-01T11:30:00Z")
    on = posted_tasks.switch("daily", True, act(sim))
    assert (on.enabled, on.next_run_at) == (True, at(12))
    sim.advance_to("2024-01-01T12:00:01Z")
    assert outcomes() == [("skipped", "disabled"), ("succeeded", "due")]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda sim: post(sim),
        lambda sim: posted_tasks.switch("daily", True, act(sim)),
        lambda sim: posted_tasks.switch("daily", False, act(sim)),
        lambda sim: posted_tasks.remove("daily", act(sim)),
    ],
    ids=["post", "enable", "disable", "remove"],
)
def test_a_task_of_settings_is_not_changed_from_outside(
    simulation: Simulate, change: Callable[[Simulation], object], declared: bool
) -> None:
    sim = simulation("10:10:30")
    entry = {"name": "daily", "cron": HOURLY, "callback": reports.generate, "enabled": declared}
    sim.initialize([entry])
    before = ScheduledTask.objects.values().get()
    with pytest.raises(OwnedError):
        change(sim)
    assert ScheduledTask.objects.values().get() == before
    assert not TaskOverride.objects.exists()


def test_enabling_ends_a_persons_pause_as_well(simulation: Simulate) -> None:
    sim = simulation("10:10:30")
    post(sim)
    operator_actions.pause(["daily"], act(sim))
    on = posted_tasks.switch("daily", True, act(sim))
    assert (on.paused_since, on.next_run_at) == (None, at(11))


def test_a_switch_is_one_transaction(simulation: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    sim = simulation("10:10:30")
    post(sim, enabled=False)
    operator_actions.pause(["daily"], act(sim))

    def refuse(*args: Any) -> Any:
        raise DatabaseError("the second half fails")

    with monkeypatch.context() as patch:
        patch.setattr(operator_actions, "resume", refuse)
        with pytest.raises(DatabaseError):
            posted_tasks.switch("daily", True, act(sim))
    assert (row().enabled, row().paused_since is None) == (False, False)
    on = posted_tasks.switch("daily", True, act(sim))
    assert (on.enabled, on.paused_since) == (True, None)


@pytest.mark.requirement("002 CRON-01")
def test_settings_win_where_both_declare_a_name(simulation: Simulate, calls: list[Any]) -> None:
    sim = simulation("10:10:30")
    post(sim)
    declare(sim, "daily", HOURLY)
    assert (row().origin, row().callback) != ("http", "report.generate")
    assert "entry" not in row().declaration
    sim.advance_to("2024-01-01T11:00:01Z")
    assert sim.starts("daily") == [at(11)]
    assert calls == []


def test_removing_lets_the_history_stand(sim: Simulation) -> None:
    sim.advance_to("2024-01-01T11:30:00Z")
    posted_tasks.remove("daily", act(sim))
    assert not ScheduledTask.objects.filter(name="daily").exists()
    assert outcomes() == [(Outcome.SUCCEEDED, "due")]
    for absent in (
        lambda: posted_tasks.remove("daily", act(sim)),
        lambda: posted_tasks.switch("daily", True, act(sim)),
        lambda: posted_tasks.read("daily"),
    ):
        with pytest.raises(NotRegisteredError):
            absent()


def test_an_unknown_type_does_not_affect_other_tasks(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, calls: list[Any]
) -> None:
    with monkeypatch.context() as another_process:
        another_process.setattr(handlers, "find", lambda name: None)
        sim.advance_to("2024-01-01T11:00:01Z")
        assert sim.starts("a") == [at(11)]
        broken = row()
        assert "`report.generate` is not a registered type" in broken.broken_reason
        for shown in serializers.both(broken, may_read=True).values():
            assert (shown["problem"], shown["next_run_at"]) == (broken.broken_reason, None)
        assert calls == []
    sim.advance_to("2024-01-01T11:06:00Z")
    assert calls == [(7,)]
    assert row().broken_reason == ""
    assert "problem" not in serializers.cron_job(row())


@pytest.mark.parametrize(
    "damage", [{"declaration": ["no object"]}, {"cron": "garbage", "declaration": {}}]
)
def test_a_damaged_row_is_set_aside_until_it_is_registered_again(
    sim: Simulation, calls: list[Any], damage: dict[str, Any]
) -> None:
    ScheduledTask.objects.filter(name="daily").update(digest="damaged", **damage)
    sim.advance_to("2024-01-01T11:06:00Z")
    assert (sim.starts("a"), calls) == ([at(11)], [])
    assert row().broken_reason
    post(sim)
    assert row().broken_reason == ""
    sim.advance_to("2024-01-01T12:00:01Z")
    assert sim.starts("daily")[-1] == at(12)


@pytest.mark.parametrize("path", ["tests.http.never.imported", "os.system"])
def test_a_forged_row_imports_nothing(sim: Simulation, calls: list[Any], path: str) -> None:
    written = json.loads(json.dumps(row().declaration).replace("report.generate", path))
    assert written != row().declaration
    ScheduledTask.objects.filter(name="daily").update(declaration=written, callback=path)
    sim.advance_to("2024-01-01T11:06:00Z")
    assert (sim.starts("a"), calls) == ([at(11)], [])
    assert "tests.http.never" not in sys.modules
    assert "is not a registered type" in row().broken_reason


def test_a_failure_is_retried_as_declared(sim: Simulation) -> None:
    post(sim, type="report.fail")
    sim.advance_to("2024-01-01T11:00:01Z")
    assert row().pending_retry_until is not None
    assert outcomes()[0] == ("failed", "due")


def test_the_judge_leaves_them_out(sim: Simulation) -> None:
    sim.advance_to("2024-01-01T13:00:01Z")
    assert len(sim.starts("daily")) == 3
    call_command("cron", "verify")


@pytest.mark.django_db(transaction=True)
def test_it_can_be_run_in_the_foreground(calls: list[Any]) -> None:
    entry = {"name": "daily", "cron": YEARLY, "type": "report.generate", "args": [7]}
    declaration, _ = conf.posted(entry)
    assert declaration is not None
    posted_tasks.post(declaration, system_clock.now())
    call_command("cron", "run", "daily")
    assert calls == [(7,)]
    assert outcomes() == [("succeeded", "manual")]
    with pytest.raises(CommandError) as refused:
        call_command("cron", "run", "dayly")
    assert refused.value.returncode == 2


def test_a_person_may_ask_for_a_run(sim: Simulation, calls: list[Any]) -> None:
    operator_actions.request_run(["daily"], act(sim))
    sim.advance_to("2024-01-01T10:59:55Z", at_least_every=SECOND)
    assert outcomes() == [("succeeded", "manual")]


@pytest.mark.parametrize("before", [None, YEARLY])
def test_a_task_registered_late_in_its_minute_has_one_boot_run(
    simulation: Simulate, before: str | None
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([])
    if before is not None:
        post(sim, cron=before)
    sim.advance_to("2024-01-01T10:00:59.900Z")
    post(sim, cron="* * * * *")
    sim.clock.advance(at(10) + timedelta(minutes=1))
    sim.poll()
    (run,) = sim.runs("daily")
    assert (run.reason, run.scheduled_for) == ("boot", at(10) + timedelta(minutes=1))
