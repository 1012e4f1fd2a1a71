"""What each command shows of one small deployment, on a terminal of 80 columns and in a pipe.

The expected texts stand in ``golden/``. With ``DDC_WRITE_GOLDEN=1`` the tests write them anew.
"""

from __future__ import annotations

import difflib
import io
import logging
import os
import re
import shlex
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock
from uuid import NAMESPACE_URL, uuid5
from zoneinfo import ZoneInfo

import pytest
from django.core.cache import cache
from django.core.management import BaseCommand
from django.db import connection, transaction

from django_declarative_cron import conf
from django_declarative_cron.core.http_api import Right
from django_declarative_cron.management.cli.runscheduler_output import RunLineFormatter, banner
from django_declarative_cron.management.cli.terminal import columns
from django_declarative_cron.management.commands import cron as cron_command
from django_declarative_cron.management.commands import runscheduler
from django_declarative_cron.models import OutboxEvent, SchedulerInstance, SchedulerState
from django_declarative_cron.monitoring import channels, dead_man_switch
from django_declarative_cron.runtime import foreground
from django_declarative_cron.runtime.clock import SystemClock
from django_declarative_cron.store import access_tokens, operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from .conftest import HERE, Answer, Cron

GOLDEN = Path(__file__).parent / "golden"
CRONTAB = "MAILTO=ops@example.org\n30 4 * * 1-5 python manage.py clearsessions\n"

CALLS = {
    "list": [
        "list",
        "list --status retrying --status paused-until",
        "list report-*",
        "list --tag nothing",
        "list reprot-daily",
        "list report-* --wide",
        "list sync-orders --format json",
    ],
    "show": ["show report-daily", "show sync-orders", "show old-report", "show reprot-daily"],
    "next": ["next report-weekly -n 4", "next '*/20 9 * * 1-5' -n 2", "next '0 25 * * *'"],
    "history": [
        "history -n 8",
        "history sync-orders --since 3h",
        "history import-prices --format json",
        "history report-daily --since 2h",
    ],
    "run": ["run report-daily --user ada", "run fail-often --user ada", "run import-prices"],
    "pause": [
        "pause report-daily --user ada",
        "pause --tag reports --for 2h --user ada",
        "pause archive-orders --user ada",
    ],
    "resume": [
        "resume send-newsletter rebuild-index --user ada",
        "resume report-daily --user ada",
        "resume disabled-task --user ada",
    ],
    "skip": [
        "skip report-daily --user ada",
        "skip report-daily --undo --user ada",
        "skip rebuild-index --user ada",
    ],
    "retry": [
        "retry sync-orders --now --user ada",
        "retry sync-orders --clear --user ada",
        "retry report-daily --now --user ada",
    ],
    "cancel": ["cancel import-prices --user ada", "cancel report-daily --user ada"],
    "health": ["health", "health --max-age 60", "health --format json"],
    "plan": ["plan", "plan --format json"],
    "explain": [
        "explain report-daily",
        "explain sync-orders",
        "explain send-newsletter --at 2026-03-09T12:00",
        "explain old-report",
        "explain report-daily --format json",
    ],
    "clear-retry": ["clear-retry sync-orders --user ada", "clear-retry report-daily --user ada"],
    "backfill": [
        "backfill report-daily --from 2026-03-07 --dry-run",
        "backfill report-daily --from 2026-03-07 --user ada",
        "backfill fail-often --from 2026-03-07 --user ada",
    ],
    "simulate": ["simulate", "simulate --to 2026-03-10T07:30 -n 3"],
    "snapshot": ["snapshot schedule.txt", "snapshot kept.txt --check"],
    "prune": ["prune --days 1", "prune --runs 1 --format json"],
    "outbox": ["outbox", "outbox --requeue -n 1", "outbox -n 1 --format json"],
    "notify": ["notify --test --user ada", "notify --check"],
    "metrics": ["metrics"],
    "token": ["token list", "token create deploy --user ada", "token revoke ci --yes"],
    "verify": ["verify", "verify --since 3h", "verify --format json"],
    "import": ["import crontab crontab.txt"],
}
RUNSCHEDULER = "runscheduler"
WITH_TRANSACTIONS = ("run", "backfill")
"""Their calls see what the calls before them have written, so that they are shown once each."""
FOR_PROGRAMS = re.compile(r"import |metrics|.* --(format|wide)\b")
"""Calls whose lines may be longer than a terminal is wide."""


def _task(name: str, cron: str, **keys: Any) -> dict[str, Any]:
    keys = {"callback": f"{HERE}.nothing", "retry_delay": timedelta(minutes=5), **keys}
    common = {"timezone": "Europe/Berlin", "overlap_policy": "coalesce"}
    return {"name": name, "cron": cron, **common, **keys}


def _declared() -> list[dict[str, Any]]:
    """Return what the settings have now: some of it is not registered yet."""
    return [
        _task(
            "report-daily",
            "0 7 * * *",
            description="Mail the figures of yesterday.",
            tags=["reports", "mail"],
            options={"timeout": 900},
        ),
        _task("report-weekly", "30 2 * * 0", tags=["reports"]),
        _task("import-prices", "0 11 * * *"),
        _task("sync-orders", "0 7-18/2 * * *", retry_delay=timedelta(hours=1)),
        _task("send-newsletter", "0 9 * * 1", timezone="America/New_York"),
        _task("rebuild-index", "0 12 * * *"),
        _task("archive-orders", "0 3 1 * *", retry_delay=timedelta(days=1)),
        _task("clear-sessions", "15 12 * * *"),
        _task("fail-often", "0 22 * * *", callback=f"{HERE}.fail"),
        _task("disabled-task", "0 4 * * *", enabled=False),
    ]


def _registered(sim: Simulation) -> list[dict[str, Any]]:
    """Return what the schedulers have registered, with callbacks that take virtual time."""
    other: dict[str, dict[str, Any]] = {
        "import-prices": {"callback": sim.job(duration=timedelta(hours=5))},
        "sync-orders": {"callback": sim.job(outcomes=["ok", "ok", "fail"])},
        "archive-orders": {"cron": "0 2 1 * *"},
    }
    kept = [{**each, **other.get(each["name"], {})} for each in _declared()]
    return [each for each in kept if each["name"] != "report-weekly"]


@pytest.fixture
def deployment(
    db: None, cron: Cron, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Simulation:
    """Ten tasks on a Monday at noon, of which each is in another state."""
    settings.TIME_ZONE = "Europe/Berlin"
    sim = Simulation(start="2026-03-09T05:40:30Z", time_zone="Europe/Berlin")
    tasks = _registered(sim)
    sim.initialize([*tasks, _task("old-report", "50 6 * * *")])
    sim.advance_to("2026-03-09T06:30:00Z", at_least_every=timedelta(hours=6))
    sim.initialize(tasks)
    who = Act(author="ada", at=sim.now, note="moving house")
    operator_actions.pause(["rebuild-index"], who)
    operator_actions.pause(["send-newsletter"], who, until=datetime(2026, 3, 10, 6, tzinfo=UTC))
    sim.advance_to("2026-03-09T11:00:30Z", at_least_every=timedelta(hours=6))
    # Nobody looks for what is due any more, but the scheduler has checked in just now.
    sim.clock.advance(datetime(2026, 3, 9, 11, 17, tzinfo=UTC))
    SchedulerInstance.objects.update(
        heartbeat_at=sim.now - timedelta(seconds=4), host="web-1", pid=4711
    )
    settings.SCHEDULED_TASKS = _declared()
    monkeypatch.setattr(SystemClock, "now", lambda clock: sim.now)
    # No thread runs beside the tests.
    monkeypatch.setattr(foreground, "Heartbeat", Mock())
    _write_files(cron, sim, monkeypatch, tmp_path)
    _write_rows(sim, settings, monkeypatch)
    return sim


def _write_files(cron: Cron, sim: Simulation, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Write the files that commands read: a crontab, and a snapshot of before."""
    monkeypatch.chdir(path)
    Path("crontab.txt").write_text(CRONTAB, encoding="utf-8")
    cron("snapshot", "kept.txt", clock=sim.clock)
    kept = Path("kept.txt")
    kept.write_text(kept.read_text(encoding="utf-8").replace("07:00", "08:00"), encoding="utf-8")


def _write_rows(sim: Simulation, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add events that their receiver refuses, a token, and a channel for notifications."""
    kept = {"scheduler": SchedulerState.objects.get(), "created_at": sim.now - timedelta(hours=1)}
    for task in ("report-daily", "sync-orders"):
        OutboxEvent.objects.create(
            **kept,
            event_id=uuid5(NAMESPACE_URL, task),
            type="cron.triggered",
            task_name=task,
            body="{}",
            attempts=3,
            next_attempt_at=sim.now,
            error="503 Service Unavailable",
            dead_lettered_at=sim.now if task == "sync-orders" else None,
        )
    access_tokens.create("ci", [Right.READ, Right.REGISTER], sim.now, author="ada")
    settings.DECLARATIVE_CRON = {
        "NOTIFY": [{"kind": "webhook", "url": "http://127.0.0.1:9/", "name": "on-call"}]
    }
    for module in (dead_man_switch, channels):
        monkeypatch.setattr(module, "deliver", lambda *sent: None)
    cache.clear()


def _transcript(cron: Cron, sim: Simulation, line: str) -> str:
    """Return a call with its output, in a pipe too where that differs."""
    shown = f"$ cron {line}\n{_call(cron, sim, line, is_terminal=True)}"
    if line.startswith(WITH_TRANSACTIONS):
        return shown
    piped = f"$ cron {line}\n{_call(cron, sim, line, is_terminal=False)}"
    return shown if shown == piped else f"{shown}\n{piped.replace(line, f'{line} | cat', 1)}"


def _call(cron: Cron, sim: Simulation, line: str, *, is_terminal: bool) -> str:
    is_alone = not line.startswith(WITH_TRANSACTIONS)
    with transaction.atomic() if is_alone else nullcontext():
        answer = cron(*shlex.split(line), clock=sim.clock, is_terminal=is_terminal)
        if is_alone:
            # The next call finds the same deployment.
            transaction.set_rollback(True)
            cache.clear()
    if is_terminal and not FOR_PROGRAMS.match(line):
        shown = [*answer.lines, *answer.err.splitlines()]
        # A line of a traceback is as long as the path in it.
        wide = [each for each in shown if columns(each) > 80 and 'File "' not in each]
        assert wide == []
    return _masked(answer)


def _masked(answer: Answer) -> str:
    """Return the output, and then the errors as Django writes them, without what is random."""
    error = re.sub(r"\r.*\r", "", answer.err).strip()
    text = answer.out + (f"{error}\n" if error else "")
    return _without_chance(text) + (f"[exit code {answer.code}]\n" if answer.code else "")


def _without_chance(text: str) -> str:
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "12345678-1234-1234-1234-123456789012", text)
    # A run in a process of its own ends by the real clock, not by that of the deployment.
    unit = "(?:ms|s|min|h|d)"
    text = re.sub(rf"after <?[\d.]+ {unit}(?: \d+ {unit})?\b", "after 1 ms", text)
    text = re.sub(r'"id": \d+', '"id": 1', text)
    text = text.replace(f"{connection.vendor} 'default'", "DATABASE 'default'")
    text = re.sub(r"ddc_[0-9a-f]{12}_[\w-]+", "ddc_0123456789ab_SECRET", text)
    return re.sub(r'File ".*/(\w+\.py)", line \d+', r'File "\1", line 1', text)


def _help(command: BaseCommand, *words: str) -> str:
    """Return the own options of a command: Python words usage lines, and Django its options."""
    parser = command.create_parser("manage.py", words[0])
    for word in words[1:]:
        (found,) = (each for each in parser._actions if each.dest == "subcommand")
        parser = cast("Any", found).choices[word]
    text = parser.format_help().partition("\n\n")[2]
    return re.split(r"\n  --version|\noptions of every command", text)[0].rstrip() + "\n"


def _cases() -> list[Any]:
    """Return the subcommands; some open transactions, which a test must not hold open."""
    mark = pytest.mark.django_db(transaction=True)
    return [
        pytest.param(name, marks=mark if name in WITH_TRANSACTIONS else ())
        for name in cron_command.SUBCOMMANDS
    ]


def _compare(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("DDC_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    if text != expected:
        old, new = expected.splitlines(), text.splitlines()
        diff = difflib.unified_diff(old, new, f"golden/{path.name}", "now", lineterm="")
        pytest.fail("\n".join([*diff, "DDC_WRITE_GOLDEN=1 writes it anew."]), pytrace=False)


@pytest.mark.requirement("001 Assumptions & Notes/1")
@pytest.mark.usefixtures("eighty_columns")
@pytest.mark.parametrize("name", _cases())
def test_a_subcommand_looks_as_it_did(
    cron: Cron, deployment: Simulation, settings: Any, name: str
) -> None:
    if name in WITH_TRANSACTIONS:
        # A run notifies by threads of its own, and waits for them at its end.
        settings.DECLARATIVE_CRON = {}
    texts = [f"$ cron {name} --help\n{_help(cron_command.Command(), 'cron', name)}"]
    texts += [_transcript(cron, deployment, line) for line in CALLS[name]]
    _compare(name, "\n".join(texts))


@pytest.mark.usefixtures("eighty_columns")
def test_the_help_looks_as_it_did() -> None:
    _compare("cron", f"$ cron --help\n{_help(cron_command.Command(), 'cron')}")


@pytest.mark.django_db
@pytest.mark.usefixtures("eighty_columns")
def test_runscheduler_looks_as_it_did(request: pytest.FixtureRequest) -> None:
    log, logger = io.StringIO(), logging.getLogger("django_declarative_cron")
    handler, formatter = logging.StreamHandler(log), RunLineFormatter(ZoneInfo("Europe/Berlin"))
    handler.setFormatter(formatter)
    handler.addFilter(formatter.filter)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        scheduler = request.getfixturevalue("deployment")[0].scheduler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    shown = [
        *banner(scheduler, conf.options(), "default", 8080),
        *log.getvalue().splitlines(),
    ]
    text = _without_chance("\n".join(shown))
    text = re.sub(r"^\d{4}-\d\d-\d\d [\d:,]+", "2026-03-09 12:00:00,000", text, flags=re.M)
    called = f"$ runscheduler --help\n{_help(runscheduler.Command(), RUNSCHEDULER)}"
    _compare(RUNSCHEDULER, f"{called}\n$ runscheduler --health-port 8080\n{text}\n")


def test_there_is_no_text_of_something_else() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*CALLS, "cron", RUNSCHEDULER}
