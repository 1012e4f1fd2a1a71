"""``cron list``, ``history``, ``show`` and ``prune``; ``test_golden.py`` has their tables whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.management.cli import subcommand
from django_declarative_cron.management.cli.terminal import columns
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskRun
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
    data = cron("list", "--format", "json", clock=sim.clock).data
    assert (data["initialized_at"], data["tasks"]) == (None, [])
    # A scheduler without tasks is something else.
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
        (["late", "zzz*"], 1, "No task is called 'zzz*'. Patterns are such as 'report-*'."),
        (["--timezone", "Europe/Berln"], 2, 'did you mean "Europe/Berlin"?'),
    ],
)
def test_nonsense_is_refused_with_a_way_on(
    cron: Cron, crowd: Simulation, words: list[str], code: int, error: str
) -> None:
    answer = cron("list", *words, clock=crowd.clock)
    assert (answer.code, answer.out, error in answer.err) == (code, "", True)


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


def test_a_request_and_a_retry_under_a_pause_are_shown(cron: Cron, crowd: Simulation) -> None:
    act = Act(author="an operator", at=crowd.now)
    operator_actions.request_run(["long"], act)
    operator_actions.pause(["failing"], act)
    answer = cron("list", clock=crowd.clock)
    assert "asked for now" in answer.out
    assert "retry when resumed" in answer.out


def test_a_damaged_row_comes_first_with_its_reason(cron: Cron, crowd: Simulation) -> None:
    ScheduledTask.objects.filter(name="daily").update(cron="nonsense")
    ScheduledTask.objects.filter(name="long").update(broken_reason="cannot be called\x1b[31m")
    answer = cron("list", clock=crowd.clock)
    order = [line.split()[2] for line in answer.lines if line.startswith(("✖", "▲"))]
    assert order == ["late", "daily", "long"]
    assert "'daily' is broken: Invalid cron expression" in answer.err
    assert "'long' is broken: cannot be called\\x1b[31m" in answer.err


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


# --- history, show and prune ---


@pytest.fixture
def three(sim: Simulation) -> Simulation:
    """Two tasks; one failed at eleven and succeeded after its retry."""
    sim.initialize(
        [
            ("flaky", "0 * * * *", sim.job(outcomes=["ok", "fail", "ok"]), DELAY),
            ("quarter", "15 * * * *", sim.job(), DELAY),
        ]
    )
    sim.advance_to("2024-01-01T11:40Z")
    return sim


def test_history_is_narrowed_by_name_outcome_time_and_number(cron: Cron, three: Simulation) -> None:
    def number(*words: str) -> int:
        return len(cron("history", *words, "--format", "json", clock=three.clock).data["runs"])

    assert number("flaky", "--outcome", "failed") == 1
    assert number("flaky", "-n", "1") == 1
    assert number("--since", "2024-01-01T11:15Z") == 1
    assert number("quarter", "--outcome", "failed") == 0


def test_the_history_of_a_name_outlives_its_task(cron: Cron, three: Simulation) -> None:
    three.initialize([])
    assert not ScheduledTask.objects.exists()
    assert cron("history", "flaky", clock=three.clock).code == 0
    assert cron("history", "nobody", clock=three.clock).code == 2


def test_show_tells_programs_what_comes_and_what_was(cron: Cron, three: Simulation) -> None:
    data = cron("show", "flaky", "--format", "json", clock=three.clock).data
    [task] = cron("list", "flaky", "--format", "json", clock=three.clock).data["tasks"]
    assert {key: data[key] for key in task} == task
    more = "now description callback retry_delay_seconds retry why next runs"
    assert list(data) == [*task, *more.split()]
    assert (data["callback"], data["retry_delay_seconds"], data["retry"]) == (
        "django_declarative_cron.testing.callables.Job",
        300.0,
        None,
    )
    assert data["next"][:2] == ["2024-01-01T12:00:00Z", "2024-01-01T13:00:00Z"]
    assert [run["outcome"] for run in data["runs"]][:2] == ["succeeded", "failed"]


def test_since_may_be_a_length_before_now(cron: Cron, three: Simulation) -> None:
    def starts(since: str) -> list[str]:
        words = ("history", "--since", since, "--format", "json")
        return [run["scheduled_for"] for run in cron(*words, clock=three.clock).data["runs"]]

    an_hour_ago = three.now - timedelta(hours=1)
    assert starts("1h") == starts("60m") == starts(an_hour_ago.isoformat())
    assert len(starts("0s")) < len(starts("1h")) < len(starts("1d"))
    assert starts("2024-01-01") == starts("1d")
    for refused in ("yesterday", "1w", "10"):
        answer = cron("history", "--since", refused, clock=three.clock)
        forms = "write 2h, 2030-01-31 or 2030-01-31T07:00."
        assert (answer.code, answer.err) == (2, f"--since {refused!r} is not a time: {forms}")


def test_prune_deletes_what_is_too_much_or_too_old(cron: Cron, three: Simulation) -> None:
    three.advance_to("2024-01-01T18:40Z")
    before = TaskRun.objects.count()
    answer = cron("prune", "--runs", "2", "--format", "json", clock=three.clock).data
    assert answer["kept"] == TaskRun.objects.count() == before - answer["deleted"]
    assert TaskRun.objects.filter(task_name="quarter").count() == 2
    three.clock.advance(three.now + timedelta(days=5))
    cron("prune", "--days", "4", clock=three.clock)
    assert TaskRun.objects.filter(task_name="quarter").count() == 1


@pytest.mark.parametrize("words", [("--days", "0"), ("--runs", "-1"), ("--runs", "many")])
def test_prune_refuses_what_is_no_number(
    cron: Cron, three: Simulation, words: tuple[str, ...]
) -> None:
    assert "is not a number" in cron("prune", *words, clock=three.clock).err


def test_a_terminal_is_told_how_far_the_pruning_is(
    cron: Cron, three: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subcommand, "_PROGRESS_INTERVAL", 0)
    told = cron("prune", "--runs", "1", clock=three.clock, is_terminal=True).err
    assert "\rchecking flaky" in told
    assert cron("prune", "--runs", "1", clock=three.clock).err == ""


def test_show_says_where_a_run_takes_place_and_what_ends_it(cron: Cron, sim: Simulation) -> None:
    entry: dict[str, Any] = {"name": "t", "cron": "0 * * * *", "callback": sim.job([])}
    sim.initialize([{**entry, "runner": "thread", "atomic": True, "options": {"timeout": 90}}])
    facts = [" ".join(line.split()) for line in cron("show", "t", clock=sim.clock).lines]
    assert "runner thread, in one transaction" in facts
    assert "timeout 1 min 30 s" in facts
    assert "overlap skip" in facts


def test_attempts_are_counted_and_history_says_why_nothing_follows(
    cron: Cron, sim: Simulation
) -> None:
    policy = {"max_attempts": 3, "initial_interval": "PT1M", "jitter": False}
    entry = {"name": "t", "cron": "0 * * * *", "callback": sim.job(["fail"])}
    sim.initialize([{**entry, "options": {"retry": policy}}])
    lines = cron("show", "t", clock=sim.clock).lines
    assert "retry         3 attempts, PT1M, ×2 each, PT5M at most" in lines
    assert "next attempt  2 of 3" in lines
    sim.advance_to("2024-01-01T10:30:00Z")
    given_up, second, first = cron("history", "t", clock=sim.clock).lines[1:4]
    assert given_up.endswith("retry, attempt 3 of 3, given up: attempts, SimulatedFailure: fail")
    assert second.endswith("retry, attempt 2 of 3, SimulatedFailure: fail")
    assert first.endswith("boot, SimulatedFailure: fail")


@pytest.mark.usefixtures("eighty_columns")
@pytest.mark.parametrize("words", [("history",), ("show", "flaky")])
def test_an_error_has_one_line_below_its_run(
    cron: Cron, three: Simulation, words: tuple[str, ...]
) -> None:
    long = f"ConnectionError: {'no route ' * 40}"
    TaskRun.objects.filter(outcome="failed").update(error=f"{long}\nmore")
    answer = cron(*words, clock=three.clock, is_terminal=True)
    shown = [line for line in answer.lines if "no route" in line]
    assert shown == [f"  {long[:77].rstrip()}…"]
    assert max(map(columns, answer.lines)) <= 80
    assert answer.lines[answer.lines.index(shown[0]) - 1].startswith("failed ")
    piped = cron(*words, clock=three.clock).out
    assert f"due, {long.strip()}\n" in piped


@pytest.mark.usefixtures("eighty_columns")
def test_wide_lines_are_those_of_a_pipe(cron: Cron, three: Simulation) -> None:
    TaskRun.objects.filter(outcome="failed").update(error="no route " * 40)
    wide = cron("history", "--wide", clock=three.clock, is_terminal=True).lines
    table = cron("history", clock=three.clock).lines
    assert wide[: len(table)] == table
