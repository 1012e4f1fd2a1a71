"""One task of each rival after the other: its entry with every difference, or the reason."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
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

from .stand_ins import CronTrigger, DateTrigger, IntervalTrigger, Schedule, beat_row, crontab_row

Keys = dict[str, Any]
ONE = {"retry": {"max_attempts": 1}}
ALLOW = {"overlap_policy": "allow", "options": ONE}
AT = datetime(2027, 1, 31, 5, 30, tzinfo=UTC)
DAILY = crontab_row(minute="0", hour="7")
SUNSET = SimpleNamespace(event="sunset", latitude=1, longitude=2)
CHECK = {"command": ["check"]}
MIDNIGHT = {"hour": "0", "minute": "0", "second": "0"}
ANACRON = "test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron."


def abouts(task: ImportedTask) -> list[str]:
    return [each.about for each in task.differences]


@pytest.fixture(autouse=True)
def functions_of_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let functions that nobody wrote take arguments by name only."""
    monkeypatch.setattr(calls, "bind", lambda path, args, kwargs: None if kwargs else args)


# --- what each rival has ---


def beat(**given: Any) -> ImportedTask:
    """Convert a row with the daily crontab unless it has another schedule."""
    kept = given.pop("keep_workers", False)
    schedule = None if "interval" in given else DAILY
    row = beat_row(**{"name": "x", "task": "a.b", "crontab": schedule, **given})
    return celery_beat.of_row(row, None, keep_workers=kept)


def q(**given: Any) -> ImportedTask:
    """Convert a row of django-q, which runs in Berlin at 6:30 on 31 January next."""
    nothing = dict.fromkeys(("minutes", "cron", "args", "kwargs", "hook"))
    keys = {"name": "x", "func": "a.b", "schedule_type": "D", "next_run": AT, "repeats": -1}
    return django_q.convert(
        SimpleNamespace(**{**nothing, **keys, **given}), ZoneInfo("Europe/Berlin")
    )


def classes(schedule: Keys, **own: Any) -> list[ImportedTask]:
    job = SimpleNamespace(schedule=Schedule(**schedule), code="code", **own)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(django_cron, "imported", lambda path: job)
        return django_cron.convert("a.B", "UTC")


def one_class(**schedule: Any) -> ImportedTask:
    (task,) = classes(schedule)
    return task


def item(*parts: Any) -> ImportedTask:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "bind", lambda path, args, kwargs: [*args, *kwargs.values()])
        return django_crontab.convert(parts, "UTC")


def job(trigger: Any = None, **given: Any) -> ImportedTask:
    own = {"id": "x", "func_ref": "a:b", "args": (), "kwargs": {}, **given}
    found = SimpleNamespace(trigger=trigger or IntervalTrigger(hours=2), **own)
    return apscheduler.convert(found, {}, "UTC")


def lines(text: str, *, system: bool = False) -> list[ImportedTask]:
    return crontab.convert(text, "UTC", with_users=system)[0]


def line(text: str, *, system: bool = False) -> ImportedTask:
    (task,) = lines(text, system=system)
    return task


def command(text: str) -> ImportedTask:
    return line(f"0 5 * * * {text}")


def limited_trigger() -> IntervalTrigger:
    trigger = IntervalTrigger(hours=2)
    trigger.start_date, trigger.end_date, trigger.jitter = AT, AT, 5
    return trigger


CONVERTED: list[tuple[Callable[[], ImportedTask], Keys, list[str]]] = [
    # Celery
    (lambda: beat(), {"cron": "0 7 * * *", "timezone": "UTC", "callback": "a.b", **ALLOW}, []),
    (
        lambda: beat(interval=SimpleNamespace(every=30, period="seconds")),
        {"cron": "@every 30s", **ALLOW},
        ["schedule"],
    ),
    (lambda: beat(crontab=crontab_row(timezone="Asia/Tokyo")), {"timezone": "Asia/Tokyo"}, []),
    (lambda: beat(enabled=False), {"enabled": False, **ALLOW}, ["enabled"]),
    (
        lambda: beat(kwargs='{"a": 1}'),
        {"callback": CALL, "args": ["a.b", [], {"a": 1}]},
        ["arguments"],
    ),
    (lambda: beat(queue="q", priority=3), {"callback": "a.b"}, ["queue", "queue"]),
    (lambda: beat(start_time=AT, expires=AT), {"callback": "a.b"}, ["ends", "ends"]),
    (lambda: beat(description="What for"), {"description": "What for"}, []),
    (
        lambda: beat(keep_workers=True, task="m.f", args="[1]"),
        {"callback": "m.f.delay", "args": [1], **ALLOW},
        [],
    ),
    (
        lambda: beat(keep_workers=True, task="m.f", kwargs='{"x": 1}'),
        {"callback": "m.f.apply_async", "args": [[], {"x": 1}], **ALLOW},
        [],
    ),
    (
        lambda: beat(keep_workers=True, task="m.f", args="[1]", queue="slow"),
        {"callback": CALL, "args": ["m.f.apply_async", [[1], {}], {"queue": "slow"}]},
        ["arguments"],
    ),
    # django-q
    (lambda: q(schedule_type="H"), {"cron": "30 * * * *", **ALLOW}, []),
    (lambda: q(schedule_type="D"), {"cron": "30 6 * * *"}, []),
    (lambda: q(schedule_type="W"), {"cron": "30 6 * * SUN"}, []),
    (lambda: q(schedule_type="M"), {"cron": "30 6 31 * *"}, ["days"]),
    (lambda: q(schedule_type="BM"), {"cron": "30 6 31 */2 *"}, ["days"]),
    (lambda: q(schedule_type="Q"), {"cron": "30 6 31 */3 *"}, ["days"]),
    (lambda: q(schedule_type="Y"), {"cron": "30 6 31 1 *"}, []),
    (lambda: q(schedule_type="I", minutes=15), {"cron": "@every 15m"}, ["schedule"]),
    (lambda: q(schedule_type="BW"), {"cron": "@every 336h"}, ["schedule"]),
    (lambda: q(schedule_type="C", cron="*/5 * * * 1-5"), {"cron": "*/5 * * * MON-FRI"}, []),
    (lambda: q(name="", repeats=0), {"enabled": False}, ["enabled"]),
    (lambda: q(repeats=3), {}, ["ends"]),
    (lambda: q(hook="a.c"), {}, ["callback"]),
    (lambda: q(cluster="other"), {}, ["queue"]),
    (lambda: q(intended_date_kwarg="at"), {}, ["arguments"]),
    (lambda: q(kwargs="a=1"), {}, ["arguments"]),
    (lambda: q(next_run=AT.replace(second=9)), {}, ["schedule"]),
    # django-cron
    (
        lambda: one_class(run_every_mins=5),
        {"cron": "@every 5m", "callback": CALL_DO, "args": ["a.B"], "options": ONE},
        ["schedule"],
    ),
    (
        lambda: one_class(run_every_mins=5, retry_after_failure_mins=7),
        {"retry_delay": timedelta(minutes=7)},
        ["schedule", "retry"],
    ),
    (
        lambda: one_class(run_at_times=["7:05"], run_on_days=[0, 6]),
        {"cron": "5 7 * * MON,SUN"},
        ["weekday"],
    ),
    (
        lambda: one_class(run_at_times=["7:05"], run_monthly_on_days=[1, 15]),
        {"cron": "5 7 1,15 * *"},
        [],
    ),
    (
        lambda: classes({"run_every_mins": 5}, ALLOW_PARALLEL_RUNS=True)[0],
        {"overlap_policy": "allow"},
        ["schedule"],
    ),
    # django-crontab
    (lambda: item("*/5 * * * *", "a.b"), {"cron": "*/5 * * * *", "callback": "a.b"}, []),
    (lambda: item("0 4 * * *", "a.b"), {"catch_up_window": 0, **ALLOW}, []),
    (lambda: item("0 4 * * *", "a.b", ">> x"), {"callback": "a.b"}, ["output"]),
    (lambda: item("0 4 * * *", "a.b", [1]), {"args": [1]}, []),
    (lambda: item("0 4 * * *", "a.b", [1], {"b": 2}), {"args": [1, 2]}, ["arguments"]),
    (lambda: item("0 4 * * *", "a.b", [1], {}, "| x"), {"args": [1]}, ["output"]),
    (
        lambda: item(
            *("0 4 * * *", django_crontab.CALL_COMMAND[0], ["check"]),
            {"deploy": True, "tag": None},
        ),
        {"command": ["check", "--deploy"]},
        ["arguments"],
    ),
    # APScheduler
    (
        lambda: job(),
        {"cron": "@every 2h", "callback": "a.b", "catch_up_window": 1, "options": ONE},
        ["schedule"],
    ),
    (lambda: job(next_run_time=None), {"enabled": False}, ["schedule", "enabled"]),
    (lambda: job(max_instances=3), {"overlap_policy": "allow"}, ["schedule", "overlap"]),
    (lambda: job(coalesce=False), {}, ["schedule", "catch-up"]),
    (lambda: job(misfire_grace_time=60), {"catch_up_window": 60}, ["schedule"]),
    (lambda: job(limited_trigger()), {}, ["schedule", "schedule", "ends"]),
    (lambda: job(CronTrigger(**{**MIDNIGHT, "hour": "3"})), {"cron": "0 3 * * *"}, []),
    (lambda: job(CronTrigger(second="*/10")), {"cron": "*/10 * * * * *"}, []),
    (lambda: job(CronTrigger(day="last", **MIDNIGHT)), {"cron": "0 0 L * *"}, []),
    (lambda: job(CronTrigger(day="2nd mon", **MIDNIGHT)), {"cron": "0 0 * * MON#2"}, []),
    (lambda: job(CronTrigger(day="last fri", **MIDNIGHT)), {"cron": "0 0 * * FRIL"}, []),
    (lambda: job(CronTrigger(day="5/10", **MIDNIGHT)), {"cron": "0 0 5-25/10 * *"}, []),
    # crontabs
    (lambda: command("./manage.py check"), {"command": ["check"], "catch_up_window": 0}, []),
    (lambda: command("manage.py load a#b"), {"command": ["load", "a#b"]}, []),
    (
        lambda: command("/usr/bin/python3 -u /a/manage.py check --tag 'a b'"),
        {"command": ["check", "--tag", "a b"]},
        ["environment"] * 2,
    ),
    (
        lambda: command("cd /a && . env/activate && ./manage.py count 7 > /dev/null 2>&1"),
        {"command": ["count", "7"]},
        ["environment", "environment", "output"],
    ),
    (lambda: command("A=1 B=2 nice -n 19 python3 -m django check"), CHECK, ["environment"] * 3),
    (
        lambda: command("env X=1 timeout -k 5 90 django-admin check --settings prod --deploy"),
        {"command": ["check", "--deploy"], "options": {"timeout": 90, **ONE}},
        ["environment"] * 2,
    ),
    (
        lambda: command("flock -n x.lock timeout 10m python manage.py check 2>>err.log"),
        {"command": ["check"], "overlap_policy": "skip", "options": {"timeout": 600, **ONE}},
        ["output", "overlap"],
    ),
    (
        lambda: line("0 5 * * *\troot\tpython manage.py clear", system=True),
        {"command": ["clear"]},
        ["environment"],
    ),
    (
        lambda: line("SHELL=/bin/bash\n0 5 * * * source x && echo 'a b'"),
        {"args": ["/bin/bash -c 'source x && echo '\"'\"'a b'\"'\"''"]},
        ["callback", "callback"],
    ),
    (
        lambda: line("SHELL=/bin/bash\n0 5 * * * read a; [[ $a ]]%first%second"),
        {"args": ["/bin/bash -c 'read a; [[ $a ]]'", "first\nsecond\n"]},
        ["callback", "callback"],
    ),
]


@pytest.mark.parametrize(("convert", "keys", "about"), CONVERTED)
def test_a_task_is_converted(
    convert: Callable[[], ImportedTask], keys: Keys, about: list[str]
) -> None:
    task = convert()
    assert task.entry, task.differences
    assert {key: task.entry.get(key) for key in keys} == keys
    assert [each for each in abouts(task) if each != "name"] == about


REFUSED: list[tuple[Callable[[], ImportedTask], str]] = [
    (lambda: beat(solar=SUNSET, crontab=None), "not a time of a clock"),
    (lambda: beat(one_off=True), "runs once"),
    (lambda: beat(interval=SimpleNamespace(every=10, period="microseconds")), "too fine"),
    (lambda: beat(crontab=crontab_row(minute="61")), "out of 0 to 59"),
    (lambda: beat(crontab=crontab_row(day_of_month="13", day_of_week="0")), "both had to match"),
    (lambda: beat(args="[NaN]"), "only JSON"),
    (lambda: q(schedule_type="O"), "once"),
    (lambda: q(next_run=None), "no next run"),
    (lambda: q(schedule_type="X"), "'X'"),
    (lambda: one_class(), "neither an interval nor a time"),
    (lambda: one_class(run_at_times=["noon"]), "'noon' is not a time of day"),
    (lambda: one_class(run_every_mins=5, run_on_days=[0]), "an interval on certain days"),
    (lambda: one_class(run_every_mins=5, run_on_days=[]), "it names no day at all"),
    (lambda: job(func_ref=None), "no dotted path"),
    (lambda: job(DateTrigger(AT)), "one date, 2027-01-31 05:30,"),
    (lambda: job(CronTrigger(year="2030")), "`year=2030`"),
    (lambda: job(CronTrigger(week="1")), "`week=1`"),
    (lambda: job(CronTrigger(day="13", day_of_week="fri")), "both had to match"),
    (lambda: line("0 5 * * * * manage.py clear"), "more than five fields"),
    (lambda: line("0 0 5 * * ? 2027 manage.py clear"), "more than five fields"),
    (lambda: line("0 5 * * * root manage.py clear"), "add --system"),
    (lambda: line("0 5 * * *"), "not a line of a crontab"),
    (lambda: line("* * * * * " + "a" * 20_000), "it has 20,010 characters"),
]


@pytest.mark.parametrize(("convert", "reason"), REFUSED)
def test_a_task_without_equivalent_is_listed(
    convert: Callable[[], ImportedTask], reason: str
) -> None:
    task = convert()
    assert (task.entry, abouts(task)) == ({}, ["refused"])
    assert reason in task.differences[0].text


# --- of single rivals ---


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
    ("args", "kwargs", "reason"),
    [
        *(("__import__('os')", None, "no literals"), (None, "a=b", "no literals")),
        *(("(", None, "no literals"), ("[" * 100_000, "", "no literals|nested too deep")),
        ("(" * 5_000 + ")" * 5_000, "", "no literals|nested too deep"),
        ("-" * 100_000 + "1", "", "no literals|nested too deep"),
    ],
    ids=range(6),
)
def test_nothing_in_them_is_evaluated(args: Any, kwargs: Any, reason: str) -> None:
    with pytest.raises(UntranslatableError, match=reason):
        django_q.arguments(args, kwargs)


def test_times_that_one_expression_cannot_name_are_several_entries() -> None:
    tasks = classes({"run_at_times": ["11:30", "14:00", "23:30"]})
    give_names(tasks)
    named = [(task.entry["name"], task.entry["cron"]) for task in tasks]
    assert named == [("code", "30 11,23 * * *"), ("code-2", "0 14 * * *")]


def test_what_was_not_limited_is_not() -> None:
    locked = django_crontab.convert(("0 4 * * *", "a.b"), "UTC", locked=True)
    assert "overlap_policy" not in locked.entry
    assert "catch_up_window" not in job(misfire_grace_time=None).entry


@pytest.mark.parametrize(
    "text",
    [
        *("pg_dump shop > x.sql", "python manage.py dumpdata | gzip > x.gz"),
        *("python manage.py a && python manage.py b", "python manage.py check; true"),
        *("python manage.py load < x.json", "python manage.py check --at $(date)"),
        *("python manage.py", "python script.py", "echo 'never closed"),
        *("manage.py load data/*.json", "manage.py load ~/data", "manage.py load a?.json"),
        *("manage.py load {a,b}.json", "manage.py load [ab].json"),
        *("manage.py load # every night", "manage.py load --path=~/data"),
    ],
)
def test_a_line_that_needs_a_shell(text: str) -> None:
    task = command(text)
    keys = {"callback": SHELL, "args": [text], "runner": "process"}
    assert {key: task.entry[key] for key in (*keys,)} == keys
    assert abouts(task) == ["callback"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("manage.py clear --settings=shop.other", "`--settings=shop.other`"),
        ("manage.py clear --settings shop.other", "`--settings shop.other`"),
        ("manage.py clear --pythonpath=/srv", "`--pythonpath=/srv`"),
        ("/srv/venv/bin/python manage.py clear", "`/srv/venv/bin/python`"),
        ("/srv/other/manage.py clear", "`/srv/other/manage.py`"),
        ("python -W ignore manage.py clear", "`-W`"),
        ("poetry run python manage.py clear --settings=prod", "`poetry run`"),
        # Nothing is promised of output that a thread does not keep.
        (
            "python manage.py clear >> x.log",
            "wrote into x.log; what it prints goes where runscheduler",
        ),
    ],
)
def test_what_only_its_process_was_told_is_told(text: str, said: str) -> None:
    task = command(text)
    assert task.entry["command"] == ["clear"]
    assert "runner" not in task.entry
    assert any(said in each.text for each in task.differences)


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
    assert first.entry["args"] == ["echo 100% done", "fed\ntwice\n"]
    assert first.entry["timezone"] == "Europe/Berlin"
    assert (second.entry["cron"], second.entry["timezone"]) == ("30 4 1,15 * SUN", "Asia/Tokyo")
    reasons = [each.differences[-1].text for each in others]
    assert [each.entry for each in others] == [{}] * 3
    assert "start of the machine" in reasons[0]
    assert "CRON_TZ=Nowhere" in reasons[1]
    assert "`nonsense` is not a line" in reasons[2]


def test_the_crontab_of_debian_runs_what_each_line_ran() -> None:
    text = Path(__file__).with_name("debian_crontab.txt").read_text()
    tasks = lines(text, system=True)
    assert [(each.entry["cron"], each.entry["args"]) for each in tasks] == [
        ("17 * * * *", ["cd / && run-parts --report /etc/cron.hourly"]),
        ("25 6 * * *", [ANACRON + "daily; }"]),
        ("47 6 * * SUN", [ANACRON + "weekly; }"]),
        ("52 6 1 * *", [ANACRON + "monthly; }"]),
    ]
    assert [each.entry["callback"] for each in tasks] == [SHELL] * 4
    assert all(Difference("environment", "ran as root") in each.differences for each in tasks)


def test_a_line_that_no_reader_stands_is_listed_and_the_others_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read_command(task: ImportedTask, text: str, shell: str) -> None:
        if "hostile" in text:
            raise RecursionError("too deep")
        task.entry["command"] = [text]

    monkeypatch.setattr(crontab, "add_command", read_command)
    hostile, other = lines("0 5 * * * hostile\n0 5 * * * clear")
    assert not hostile.entry
    assert "RecursionError: too deep" in hostile.differences[-1].text
    assert other.entry


# --- all of them ---


def test_names_are_made_fit_and_stay_apart() -> None:
    tasks = [
        ImportedTask(was, {"cron": "* * * * *"}) for was in ("A b!", "a-b", "é", "a-b", "x" * 300)
    ]
    give_names(tasks)
    assert [task.entry["name"] for task in tasks] == ["a-b", "a-b-2", "task", "a-b-3", "x" * 100]
    assert [abouts(task) for task in tasks] == [["name"]] * 5


def test_arguments_that_are_no_json_are_refused() -> None:
    with pytest.raises(UntranslatableError, match="only JSON"):
        add_call(ImportedTask("x"), "a.b", [object()], {})
    task = ImportedTask("x")
    add_call(task, "a.b", [(1, (2,))], {})
    assert task.entry["args"] == [[1, [2]]]


def test_what_is_written_is_python_whatever_the_names() -> None:
    evil = 'x"\n__import__("os")\n\u2028\x00"""'
    entries: Keys = {"cron": "* * * * *", "args": [evil, True, None, 1.5, {evil: [evil]}]}
    entries |= {"retry_delay": timedelta(seconds=90), "description": "naïve 🦊"}
    tasks = [ImportedTask(evil, entries, [Difference("name", evil)]), ImportedTask(evil)]
    give_names(tasks)
    text = ImportResult("crontab", evil, tasks).as_python()
    left: Keys = {}
    exec(text, left)
    (found,) = left["SCHEDULED_TASKS"]
    assert {key: found[key] for key in entries} == entries
    assert {type(each) for each in ast.parse(text).body} == {ast.ImportFrom, ast.Assign}


def test_what_is_written_for_programs_is_json() -> None:
    task = ImportedTask("a", {"retry_delay": timedelta(minutes=5)}, [Difference("retry", "why")])
    found = json.loads(json.dumps(ImportResult("django-cron", "here", (task,)).as_dict()))
    differences = [{"about": "retry", "text": "why"}]
    assert found["tasks"] == [
        {"was": "a", "entry": {"retry_delay": 300.0}, "differences": differences}
    ]
