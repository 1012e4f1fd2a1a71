"""One task of each rival after the other: its entry, and every difference."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.importers import (
    apscheduler,
    calls,
    celery_beat,
    crontab,
    django_cron,
    django_crontab,
    django_q,
)
from django_declarative_cron.importers.calls import CALL, CALL_DO, SHELL, add_call
from django_declarative_cron.importers.result import (
    Difference,
    ImportedTask,
    ImportResult,
    UntranslatableError,
    give_names,
)
from django_declarative_cron.importers.shell_commands import add_command

from .stand_ins import CronTrigger, DateTrigger, IntervalTrigger, Schedule, beat_row, crontab_row

ONE = {"retry": {"max_attempts": 1}}
DAILY = crontab_row(minute="0", hour="7")


def abouts(task: ImportedTask) -> list[str]:
    return [each.about for each in task.differences]


def entry(task: ImportedTask) -> Mapping[str, Any]:
    assert task.entry, task.differences
    return task.entry


def by_name(path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any] | None:
    return None if kwargs else args


def by_place(path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any] | None:
    return [*args, *kwargs.values()]


@pytest.fixture(autouse=True)
def functions_of_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let functions that nobody wrote take arguments by name only."""
    monkeypatch.setattr(calls, "bind", by_name)


# --- Celery ---

AT = datetime(2027, 1, 31, 5, 30, tzinfo=UTC)
SUNSET = SimpleNamespace(event="sunset", latitude=1, longitude=2)
EVERY_30_S = SimpleNamespace(every=30, period="seconds")


def beat_of(**given: Any) -> SimpleNamespace:
    """Return a row with the daily crontab unless it has another schedule."""
    crontab = None if "interval" in given else DAILY
    return beat_row(**{"name": "x", "task": "a.b", "crontab": crontab, **given})


@pytest.mark.parametrize(
    ("given", "keys", "about"),
    [
        ({}, {"cron": "0 7 * * *", "timezone": "UTC", "callback": "a.b"}, []),
        ({"interval": EVERY_30_S}, {"cron": "@every 30s"}, ["schedule"]),
        ({"crontab": crontab_row(timezone="Asia/Tokyo")}, {"timezone": "Asia/Tokyo"}, []),
        ({"enabled": False}, {"enabled": False}, ["enabled"]),
        ({"kwargs": '{"a": 1}'}, {"callback": CALL, "args": ["a.b", [], {"a": 1}]}, ["arguments"]),
        ({"queue": "q", "priority": 3}, {"callback": "a.b"}, ["queue", "queue"]),
        ({"start_time": AT, "expires": AT}, {"callback": "a.b"}, ["ends", "ends"]),
        ({"description": "What for"}, {"description": "What for"}, []),
    ],
)
def test_an_entry_of_beat(given: dict[str, Any], keys: dict[str, Any], about: list[str]) -> None:
    task = celery_beat.of_row(beat_of(**given), None)
    assert entry(task).items() >= {**keys, "overlap_policy": "allow", "options": ONE}.items()
    assert abouts(task) == about


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"solar": SUNSET, "crontab": None}, "not a time of a clock"),
        ({"one_off": True}, "runs once"),
        ({"interval": SimpleNamespace(every=10, period="microseconds")}, "too fine"),
        ({"crontab": crontab_row(minute="61")}, "out of 0 to 59"),
        ({"crontab": crontab_row(day_of_month="13", day_of_week="fri")}, "both had to match"),
        ({"args": "[NaN]"}, "only JSON"),
    ],
)
def test_an_entry_of_beat_without_equivalent(given: dict[str, Any], reason: str) -> None:
    task = celery_beat.of_row(beat_of(**given), None)
    assert not task.entry
    assert reason in task.differences[-1].text


def test_workers_of_celery_may_be_kept() -> None:
    beats = [
        beat_of(task="m.f", args="[1]"),
        beat_of(task="m.f", kwargs='{"x": 1}'),
        beat_of(task="m.f", args="[1]", queue="slow"),
    ]
    first, second, third = (celery_beat.of_row(each, None, keep_workers=True) for each in beats)
    assert (entry(first)["callback"], entry(first)["args"]) == ("m.f.delay", [1])
    assert (entry(second)["callback"], entry(second)["args"]) == ("m.f.apply_async", [[], {"x": 1}])
    assert entry(third)["args"] == ["m.f.apply_async", [[1], {}], {"queue": "slow"}]


# --- django-q ---

BERLIN = ZoneInfo("Europe/Berlin")


def q_row(**given: Any) -> SimpleNamespace:
    """Return a row of django-q, which runs in Berlin at 6:30 on 31 January next."""
    nothing = dict.fromkeys(("minutes", "cron", "args", "kwargs", "hook"))
    keys = {"name": "x", "func": "a.b", "schedule_type": "D", "next_run": AT, "repeats": -1}
    return SimpleNamespace(**{**nothing, **keys, **given})


@pytest.mark.parametrize(
    ("kind", "cron", "about"),
    [
        ("H", "30 * * * *", []),
        ("D", "30 6 * * *", []),
        ("W", "30 6 * * SUN", []),
        ("M", "30 6 31 * *", ["days"]),
        ("BM", "30 6 31 */2 *", ["days"]),
        ("Q", "30 6 31 */3 *", ["days"]),
        ("Y", "30 6 31 1 *", []),
        ("I", "@every 15m", ["schedule"]),
        ("BW", "@every 336h", ["schedule"]),
        ("C", "*/5 * * * MON-FRI", []),
    ],
)
def test_a_schedule_of_django_q(kind: str, cron: str, about: list[str]) -> None:
    row = q_row(schedule_type=kind, minutes=15, cron="*/5 * * * 1-5")
    task = django_q.convert(row, BERLIN)
    assert (entry(task)["cron"], abouts(task)) == (cron, about)


@pytest.mark.parametrize(
    ("given", "about"),
    [
        ({"repeats": 0}, ["enabled"]),
        ({"repeats": 3}, ["ends"]),
        ({"hook": "a.c"}, ["callback"]),
        ({"cluster": "other"}, ["queue"]),
        ({"intended_date_kwarg": "at"}, ["arguments"]),
        ({"kwargs": "a=1"}, ["arguments"]),
        ({"next_run": AT.replace(second=9)}, ["schedule"]),
    ],
)
def test_what_a_schedule_of_django_q_loses(given: dict[str, Any], about: list[str]) -> None:
    task = django_q.convert(q_row(name="", **given), BERLIN)
    assert abouts(task) == about


@pytest.mark.parametrize(
    ("args", "kwargs", "found"),
    [
        ("1, 'x'", None, ((1, "x"), {})),
        ("7", "a=1, b='x'", ((7,), {"a": 1, "b": "x"})),
        (None, "{'a': [1]}", ((), {"a": [1]})),
        ("", "", ((), {})),
    ],
)
def test_arguments_of_django_q_are_texts(args: Any, kwargs: Any, found: Any) -> None:
    assert django_q.arguments(args, kwargs) == found


@pytest.mark.parametrize(
    ("args", "kwargs"), [("__import__('os')", None), (None, "a=b"), ("(", None)]
)
def test_nothing_in_them_is_evaluated(args: Any, kwargs: Any) -> None:
    with pytest.raises(UntranslatableError, match="no literals"):
        django_q.arguments(args, kwargs)


@pytest.mark.parametrize(
    ("kind", "at", "reason"), [("O", AT, "once"), ("D", None, "no next run"), ("X", AT, "'X'")]
)
def test_a_schedule_of_django_q_without_equivalent(kind: str, at: Any, reason: str) -> None:
    task = django_q.convert(q_row(schedule_type=kind, next_run=at), BERLIN)
    assert not task.entry
    assert reason in task.differences[-1].text


# --- django-cron ---


def of_class(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], **own: Any
) -> list[ImportedTask]:
    job = SimpleNamespace(schedule=Schedule(**given), code="code", **own)
    monkeypatch.setattr(django_cron, "imported", lambda path: job)
    return django_cron.convert("a.B", "UTC")


def test_times_that_one_expression_cannot_name_are_several_entries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks = of_class(monkeypatch, {"run_at_times": ["11:30", "14:00", "23:30"]})
    give_names(tasks)
    first, second = tasks
    assert (entry(first)["name"], entry(first)["cron"]) == ("code", "30 11,23 * * *")
    assert (entry(second)["name"], entry(second)["cron"]) == ("code-2", "0 14 * * *")
    assert entry(first).items() >= {"callback": CALL_DO, "args": ["a.B"], "options": ONE}.items()


@pytest.mark.parametrize(
    ("given", "keys", "about"),
    [
        ({"run_every_mins": 5}, {"cron": "@every 5m"}, ["schedule"]),
        (
            {"run_every_mins": 5, "retry_after_failure_mins": 7},
            {"retry_delay": timedelta(minutes=7)},
            ["schedule", "retry"],
        ),
        (
            {"run_at_times": ["7:05"], "run_on_days": [0, 6]},
            {"cron": "5 7 * * MON,SUN"},
            ["weekday"],
        ),
        (
            {"run_at_times": ["7:05"], "run_monthly_on_days": [1, 15]},
            {"cron": "5 7 1,15 * *"},
            [],
        ),
    ],
)
def test_a_class_of_django_cron(
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any],
    keys: dict[str, Any],
    about: list[str],
) -> None:
    (task,) = of_class(monkeypatch, given)
    assert entry(task).items() >= keys.items()
    assert abouts(task) == about


def test_a_class_of_django_cron_whose_runs_may_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    (task,) = of_class(monkeypatch, {"run_every_mins": 5}, ALLOW_PARALLEL_RUNS=True)
    assert entry(task)["overlap_policy"] == "allow"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"run_at_times": ["noon"]},
        {"run_every_mins": 5, "run_on_days": [0]},
        {"run_every_mins": 5, "run_on_days": []},
    ],
)
def test_a_class_of_django_cron_without_equivalent(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    (task,) = of_class(monkeypatch, given)
    assert not task.entry


# --- django-crontab ---


@pytest.mark.parametrize(
    ("item", "keys", "about"),
    [
        (("*/5 * * * *", "a.b"), {"cron": "*/5 * * * *", "callback": "a.b"}, []),
        (("0 4 * * *", "a.b", ">> x"), {"callback": "a.b"}, ["output"]),
        (("0 4 * * *", "a.b", [1]), {"args": [1]}, []),
        (("0 4 * * *", "a.b", [1], {"b": 2}), {"args": [1, 2]}, ["arguments"]),
        (("0 4 * * *", "a.b", [1], {}, "| x"), {"args": [1]}, ["output"]),
        (
            ("0 4 * * *", django_crontab.CALL_COMMAND[0], ["check"], {"deploy": True, "tag": None}),
            {"command": ["check", "--deploy"]},
            ["arguments"],
        ),
    ],
)
def test_an_item_of_django_crontab(
    monkeypatch: pytest.MonkeyPatch, item: tuple[Any, ...], keys: dict[str, Any], about: list[str]
) -> None:
    monkeypatch.setattr(calls, "bind", by_place)
    task = django_crontab.convert(item, "UTC")
    assert entry(task).items() >= keys.items()
    assert abouts(task) == about


def test_what_cron_missed_stays_left_out() -> None:
    task = django_crontab.convert(("0 4 * * *", "a.b"), "UTC")
    assert entry(task)["catch_up_window"] == 0
    (task,), _ = crontab.convert("0 0 * * * ./manage.py check\n", "UTC")
    assert entry(task)["catch_up_window"] == 0
    assert "catch_up_window" not in entry(of_job(misfire_grace_time=None))


def test_locked_jobs_are_skipped() -> None:
    task = django_crontab.convert(("0 4 * * *", "a.b"), "UTC", locked=True)
    assert "overlap_policy" not in entry(task)


# --- APScheduler ---


def of_job(trigger: Any = None, **given: Any) -> ImportedTask:
    own = {"id": "x", "func_ref": "a:b", "args": (), "kwargs": {}, **given}
    job = SimpleNamespace(trigger=trigger or IntervalTrigger(hours=2), **own)
    return apscheduler.convert(job, {}, "UTC")


@pytest.mark.parametrize(
    ("texts", "cron"),
    [
        ({"hour": "3", "minute": "0", "second": "0"}, "0 3 * * *"),
        ({"second": "*/10"}, "*/10 * * * * *"),
        ({"day": "last", "hour": "0", "minute": "0", "second": "0"}, "0 0 L * *"),
        ({"day": "2nd mon", "hour": "0", "minute": "0", "second": "0"}, "0 0 * * MON#2"),
        ({"day": "last fri", "hour": "0", "minute": "0", "second": "0"}, "0 0 * * FRIL"),
        ({"day": "5/10", "hour": "0", "minute": "0", "second": "0"}, "0 0 5-25/10 * *"),
    ],
)
def test_fields_of_apscheduler(texts: dict[str, str], cron: str) -> None:
    assert entry(of_job(CronTrigger(**texts)))["cron"] == cron


@pytest.mark.parametrize(
    ("given", "keys", "about"),
    [
        ({}, {"cron": "@every 2h", "callback": "a.b", "catch_up_window": 1}, ["schedule"]),
        ({"next_run_time": None}, {"enabled": False}, ["schedule", "enabled"]),
        ({"max_instances": 3}, {"overlap_policy": "allow"}, ["schedule", "overlap"]),
        ({"coalesce": False}, {}, ["schedule", "catch-up"]),
        ({"misfire_grace_time": 60}, {"catch_up_window": 60}, ["schedule"]),
    ],
)
def test_a_job_of_apscheduler(
    given: dict[str, Any], keys: dict[str, Any], about: list[str]
) -> None:
    task = of_job(**given)
    assert entry(task).items() >= keys.items()
    assert abouts(task) == about


def test_what_a_trigger_of_apscheduler_loses() -> None:
    trigger = IntervalTrigger(hours=2)
    trigger.start_date, trigger.end_date, trigger.jitter = AT, AT, 5
    assert abouts(of_job(trigger)) == ["schedule", "schedule", "ends"]


@pytest.mark.parametrize(
    ("trigger", "given"),
    [
        (None, {"func_ref": None}),
        (DateTrigger(AT), {}),
        (CronTrigger(year="2030"), {}),
        (CronTrigger(week="1"), {}),
        (CronTrigger(day="13", day_of_week="fri"), {}),
    ],
)
def test_a_job_of_apscheduler_without_equivalent(trigger: Any, given: dict[str, Any]) -> None:
    assert of_job(trigger, **given).differences[0].about == "refused"


# --- crontabs ---


def command_of(line: str) -> ImportedTask:
    task = ImportedTask("x")
    add_command(task, line)
    return task


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("manage.py clearsessions", ["clearsessions"]),
        ("/usr/bin/python3 -u /a/manage.py check --tag 'a b'", ["check", "--tag", "a b"]),
        ("cd /a && . env/activate && ./manage.py count 7 > /dev/null 2>&1", ["count", "7"]),
        ("A=1 B=2 nice -n 19 python3.12 -m django check", ["check"]),
        ("poetry run python manage.py check --settings=prod", ["check"]),
        (
            "env X=1 timeout -k 5 90 django-admin check --settings prod --deploy",
            ["check", "--deploy"],
        ),
        ("flock -n sync.lock python manage.py check 2>>err.log", ["check"]),
    ],
)
def test_a_line_that_is_a_management_command(line: str, words: list[str]) -> None:
    assert command_of(line).entry["command"] == words


@pytest.mark.parametrize(
    "line",
    [
        "pg_dump shop > x.sql",
        "python manage.py dumpdata | gzip > x.gz",
        "python manage.py a && python manage.py b",
        "python manage.py check; true",
        "python manage.py load < x.json",
        "python manage.py check --at $(date)",
        "python manage.py",
        "python script.py",
        "echo 'never closed",
    ],
)
def test_a_line_that_needs_a_shell(line: str) -> None:
    task = command_of(line)
    assert task.entry == {"callback": SHELL, "args": [line], "runner": "process"}
    assert abouts(task) == ["callback"]


def test_nothing_is_promised_of_output_that_a_thread_does_not_keep() -> None:
    task = command_of("python manage.py check >> check.log")
    (told,) = task.differences
    assert "runner" not in task.entry
    assert told.text.startswith("wrote into check.log; what it prints goes where runscheduler")


def test_wrappers_become_options() -> None:
    keys = command_of("flock -n x.lock timeout 10m python manage.py check").entry
    assert keys["overlap_policy"] == "skip"
    assert keys["options"] == {"timeout": 600}


CRONTAB = r"""
# m h dom mon dow command
MAILTO=ops
0 0 * * * echo 100\% done%fed%twice
  CRON_TZ = Asia/Tokyo
30 4 1,15 * sun ./manage.py check
@reboot ./start
CRON_TZ=Nowhere
@hourly ./manage.py check
nonsense
"""


def test_a_crontab_line_by_line() -> None:
    tasks, said = crontab.convert(CRONTAB, "Europe/Berlin")
    assert [each.about for each in said] == ["output"]
    first, second, *others = tasks
    assert entry(first)["args"] == ["echo 100% done", "fed\ntwice\n"]
    assert entry(first)["timezone"] == "Europe/Berlin"
    assert (entry(second)["cron"], entry(second)["timezone"]) == ("30 4 1,15 * SUN", "Asia/Tokyo")
    reasons = [each.differences[-1].text for each in others]
    assert [each.entry for each in others] == [{}] * 3
    assert "start of the machine" in reasons[0]
    assert "CRON_TZ=Nowhere" in reasons[1]
    assert "`nonsense` is not a line" in reasons[2]


def test_a_crontab_of_the_system_names_users() -> None:
    (task,), _ = crontab.convert("0 0 * * * root ./manage.py check\n", "UTC", with_users=True)
    assert entry(task)["command"] == ["check"]
    assert task.differences[0] == Difference("environment", "ran as root")


# --- all of them ---


def test_names_are_made_fit_and_stay_apart() -> None:
    tasks = [
        ImportedTask(was, {"cron": "* * * * *"}) for was in ("A b!", "a-b", "é", "a-b", "x" * 300)
    ]
    give_names(tasks)
    names = [entry(task)["name"] for task in tasks]
    assert names == ["a-b", "a-b-2", "task", "a-b-3", "x" * 100]
    assert [abouts(task) for task in tasks] == [["name"], ["name"], ["name"], ["name"], ["name"]]


def test_arguments_that_are_no_json_are_refused() -> None:
    with pytest.raises(UntranslatableError, match="only JSON"):
        add_call(ImportedTask("x"), "a.b", [object()], {})
    task = ImportedTask("x")
    add_call(task, "a.b", [(1, (2,))], {})
    assert task.entry["args"] == [[1, [2]]]


def test_what_is_written_is_python_whatever_the_names() -> None:
    evil = 'x"\n__import__("os")\n\u2028\x00"""'
    entries: dict[str, Any] = {"cron": "* * * * *", "args": [evil, True, None, 1.5, {evil: [evil]}]}
    entries |= {"retry_delay": timedelta(seconds=90), "description": "naïve 🦊"}
    tasks = [ImportedTask(evil, entries, [Difference("name", evil)]), ImportedTask(evil)]
    give_names(tasks)
    text = ImportResult("crontab", evil, tasks).as_python()
    left: dict[str, Any] = {}
    exec(text, left)
    (found,) = left["SCHEDULED_TASKS"]
    assert {key: found[key] for key in entries} == entries
    assert {type(each) for each in ast.parse(text).body} == {ast.ImportFrom, ast.Assign}


def test_what_is_written_for_programs_is_json() -> None:
    task = ImportedTask("a", {"retry_delay": timedelta(minutes=5)}, [Difference("retry", "why")])
    found = json.loads(json.dumps(ImportResult("django-cron", "here", (task,)).as_dict()))
    assert found["tasks"] == [
        {
            "was": "a",
            "entry": {"retry_delay": 300.0},
            "differences": [{"about": "retry", "text": "why"}],
        }
    ]


def test_a_line_that_no_cron_would_take_is_not_read() -> None:
    ((long, short), _) = crontab.convert("* * * * * " + "a" * 20_000 + "\n* * * * * ls\n", "UTC")
    assert (long.was, long.entry) == ("line 1", {})
    assert "it has 20,010 characters" in long.differences[-1].text
    assert short.entry
