"""Every Python block of the pages runs, and does what the text around it says."""

from __future__ import annotations

import asyncio
import json
import logging
import logging.config
import threading
import unittest
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from inspect import signature
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.core import checks
from django.db import connections
from django.db.utils import ConnectionHandler
from django.test import TestCase

from django_declarative_cron import signals
from django_declarative_cron.checks import TAG
from django_declarative_cron.core import events
from django_declarative_cron.core.channels import signature_headers
from django_declarative_cron.core.declarations.problems import Check
from django_declarative_cron.core.event_sink import Sink, envelopes
from django_declarative_cron.runtime import clock
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.context import running
from django_declarative_cron.runtime.work import Run
from django_declarative_cron.testing import Simulation

from .pages import DOCS, PAGES, Block, Page, code
from .running import Runner, announced, module_of

Find = Callable[[str], dict[str, Any]]

BLOCKS = [(page, block) for page in PAGES for block in page.blocks if block.language == "python"]
PLAIN = [(page, block) for page, block in BLOCKS if block.marker != "transactional"]
IN_TRANSACTIONS = [(page, block) for page, block in BLOCKS if block.marker == "transactional"]


@pytest.fixture
def runner(tmp_path: Path, modules: dict[str, ModuleType]) -> Runner:
    return Runner(tmp_path, modules)


@pytest.fixture
def find(runner: Runner, modules: dict[str, ModuleType]) -> Find:
    """Run the one block that a text stands in."""

    def run(text: str) -> dict[str, Any]:
        ((page, block),) = [pair for pair in BLOCKS if text in pair[1].text]
        left = runner.run(page, block)
        name = module_of(block)
        return left if name is None else vars(modules[name])

    return run


def ids(pairs: list[tuple[Page, Block]]) -> list[str]:
    return [block.place for _, block in pairs]


def test_the_pages_have_examples() -> None:
    assert len(BLOCKS) > 30
    assert len(IN_TRANSACTIONS) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(("page", "block"), PLAIN, ids=ids(PLAIN))
def test_it_runs(
    page: Page, block: Block, runner: Runner, settings: Any, request: pytest.FixtureRequest
) -> None:
    settings.SCHEDULED_TASKS = [
        ("send-digests", "0 7 * * 1-5", "shop.tasks.send_digests", timedelta(minutes=10))
    ]
    left = _run_in_turn(runner, page, block)
    for test in written_tests(left):
        test(**{name: request.getfixturevalue(name) for name in signature(test).parameters})


def _run_in_turn(runner: Runner, page: Page, block: Block) -> dict[str, Any]:
    """Run a block after the modules that its page has written by then."""
    places = [each.place for each in page.blocks]
    for each in page.blocks[: places.index(block.place)]:
        if module_of(each) is not None:
            runner.run(page, each)
    return runner.run(page, block)


def written_tests(left: dict[str, Any]) -> list[Callable[..., None]]:
    """Give the tests that a block wrote; the transaction of a ``TestCase`` is ours."""
    own = [value for value in left.values() if getattr(value, "__module__", "") == "<run_path>"]
    cases = [each for each in own if isinstance(each, type) and issubclass(each, TestCase)]
    return [
        *(each for each in own if getattr(each, "__name__", "").startswith("test_")),
        *(
            getattr(case(name), name)
            for case in cases
            for name in unittest.defaultTestLoader.getTestCaseNames(case)
        ),
    ]


def test_the_tests_shown_are_found(runner: Runner) -> None:
    page = DOCS["testing.md"]
    shown = [block for block in page.blocks if block.language == "python"]
    found = [len(written_tests(runner.run(page, block))) for block in shown]
    assert found == [1, 1, 1, 1, 3, 1, 1, 1, 1, 1]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("page", "block"), IN_TRANSACTIONS, ids=ids(IN_TRANSACTIONS))
def test_it_runs_with_threads(
    page: Page, block: Block, runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.run(page, block)
    shown = [line.rpartition("# ")[2] for line in block.text.splitlines() if "# " in line]
    assert capsys.readouterr().out.splitlines() == shown == ["Running", "Stopped"]


# --- settings ------------------------------------------------------------------

DECLARING = [(page, block) for page, block in BLOCKS if "\nSCHEDULED_TASKS = " in f"\n{block.text}"]
CONFIGURING = [pair for pair in BLOCKS if "DECLARATIVE_CRON = " in pair[1].text]


class StandingClock:
    def now(self) -> datetime:
        return datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(("page", "block"), DECLARING, ids=ids(DECLARING))
def test_declarations_get_the_remarks_announced(
    page: Page, block: Block, runner: Runner, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "system_clock", StandingClock())
    left = _run_in_turn(runner, page, block)
    settings.DECLARATIVE_CRON = {}
    for name in {"SCHEDULED_TASKS", "DECLARATIVE_CRON", "TASKS"} & left.keys():
        setattr(settings, name, left[name])
    found: list[set[str]] = [set() for _ in settings.SCHEDULED_TASKS]
    expected = announced(block.text)
    for message in checks.run_checks(tags=[TAG]):
        found[_index(message, expected)].add(str(message.id))
    assert found == expected


def _index(message: checks.CheckMessage, expected: list[set[str]]) -> int:
    """Give the item a remark is about; one about several stands at the first that says so."""
    place = str(message.obj)
    if place.startswith("SCHEDULED_TASKS["):
        return int(place.partition("[")[2].partition("]")[0])
    return next((i for i, said in enumerate(expected) if message.id in said), 0)


def test_an_item_says_its_remarks_where_it_ends() -> None:
    text = """
SCHEDULED_TASKS = [
    ("a",),
    {
        "b": 1,  # not this
    },  # E010 W001
]
"""
    assert announced(text) == [set(), {"declarative_cron.E010", "declarative_cron.W001"}]


@pytest.mark.parametrize(("page", "block"), CONFIGURING, ids=ids(CONFIGURING))
def test_options_are_accepted(page: Page, block: Block, runner: Runner, settings: Any) -> None:
    settings.SCHEDULED_TASKS = []
    settings.DECLARATIVE_CRON = _run_in_turn(runner, page, block)["DECLARATIVE_CRON"]
    assert checks.run_checks(tags=[TAG]) == []


def test_what_is_silenced_is_there_to_be_silenced(find: Find) -> None:
    assert set(find("SILENCED_SYSTEM_CHECKS")["SILENCED_SYSTEM_CHECKS"]) <= set(map(str, Check))


def test_the_logging_can_be_configured(find: Find) -> None:
    logger = logging.getLogger("django_declarative_cron")
    before = logger.handlers[:], logger.level
    try:
        logging.config.dictConfig(find('"level": "WARNING"}},')["LOGGING"])
        assert [type(handler) for handler in logger.handlers] == [logging.StreamHandler]
        assert logger.level == logging.WARNING
    finally:
        logger.handlers[:], logger.level = before
        logger.manager._clear_cache()


def test_lines_of_the_log_can_name_their_run(find: Find, run: Run) -> None:
    shown = find("%(scheduled_task)s")["LOGGING"]
    handler = shown["handlers"]["console"]
    record = logging.LogRecord("shop", logging.INFO, "", 1, "Sent.", (), None)
    said = logging.config.DictConfigurator(shown)
    formatter = said.configure_formatter(shown["formatters"][handler["formatter"]])
    name_run = said.configure_filter(shown["filters"][handler["filters"][0]])
    with running(run):
        name_run.filter(record)
    assert formatter.format(record) == f"INFO {run.task_name} Sent."


@pytest.mark.django_db
def test_sqlite_can_be_opened_as_shown(find: Find, tmp_path: Path) -> None:
    databases = find("PRAGMA journal_mode = WAL")["DATABASES"]
    databases["default"]["NAME"] = tmp_path / "shop.sqlite3"
    handler = ConnectionHandler(databases)
    with handler["default"].cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone() == ("wal",)
    handler.close_all()


# --- events --------------------------------------------------------------------


@pytest.mark.django_db
def test_the_receiver_is_called(find: Find, capsys: pytest.CaptureFixture[str]) -> None:
    left = find("def tell_somebody")
    sim = Simulation("2024-01-01T10:00Z")
    job = sim.job(outcomes=[RuntimeError("the barrel is empty")])
    sim.initialize([("water", "0 * * * *", job, timedelta(minutes=5))])
    assert left["tell_somebody"]
    assert capsys.readouterr().out == "water failed: RuntimeError: the barrel is empty\n"


@pytest.mark.django_db
def test_the_receiver_of_envelopes_is_called(
    find: Find, capsys: pytest.CaptureFixture[str]
) -> None:
    left = find("def note_what_did_not_run")
    sim = Simulation("2026-03-08T00:00Z", time_zone="America/New_York")
    sim.initialize([("water", "30 2 * * *", sim.job(), timedelta(minutes=5))])
    sim.advance_to("2026-03-08T08:00Z", at_least_every=timedelta(hours=1))
    assert left["note_what_did_not_run"]
    said = "water did not run at 2026-03-08T07:00:00Z: dst_skip\n"
    assert capsys.readouterr().out == said


def test_no_receiver_of_an_example_outlives_its_test() -> None:
    names = [
        getattr(reference(), "__module__", "")
        for signal in (*signals.SIGNALS.values(), *signals.EXTERNAL_SIGNALS.values())
        for _, reference, *_ in signal.receivers
    ]
    assert "<run_path>" not in names


def test_the_envelope_is_what_is_posted() -> None:
    (shown,) = [block.text for block in DOCS["events.md"].blocks if block.marker == "envelope"]
    at = datetime(2026, 2, 12, 14, tzinfo=UTC)
    started = events.TaskRunStarted(
        at=at + timedelta(milliseconds=123),
        task_name="water",
        scheduled_time=at,
        actual_time=at + timedelta(milliseconds=123),
        run_count=43,
        run=42,
        facts=events.Facts(
            deployment=UUID("0c5f0f6a-3a0b-4f55-8a5b-5d6b1a1a2f10"),
            source="urn:uuid:0c5f0f6a-3a0b-4f55-8a5b-5d6b1a1a2f10",
            cron="0 9 * * *",
            timezone="America/New_York",
            job_type="garden.tasks.water",
            job=UUID("019c5226-cb00-7974-8000-00000000002a"),
        ),
    )
    assert json.dumps(envelopes(started)[0], indent=2) == shown.strip()


def test_the_keys_of_a_sink_are_those_of_the_code() -> None:
    rows = {code(row["key"]): row["default"] for row in DOCS["events.md"].table(*KEY)}
    assert rows.pop("url") == "required"
    assert set(rows) == {"secret" if f.name == "secrets" else f.name for f in fields(Sink)} - {
        "url"
    }
    default = Sink("https://example.org")
    assert rows["timeout"] == f"{default.timeout.seconds} s"
    assert rows["give_up_after"] == f"{default.give_up_after.days} days"
    assert rows["most"] == f"`{default.most}`"


KEY = ("key", "default", "description")


def test_the_signature_is_verified_as_shown(find: Find) -> None:
    is_ours = find("def is_ours")["is_ours"]
    secret, old = "whsec_" + "a" * 32, "whsec_" + "b" * 32
    now = system_clock.now()
    sent = signature_headers("some-id", b"{}", now, [secret, old])
    assert is_ours(sent, b"{}", secret)
    assert is_ours(sent, b"{}", old)
    assert not is_ours(sent, b"{ }", secret)
    assert not is_ours(sent, b"{}", "whsec_" + "c" * 32)
    assert not is_ours({**sent, "webhook-id": "another"}, b"{}", secret)
    late = signature_headers("some-id", b"{}", now - timedelta(minutes=6), [secret])
    assert not is_ours(late, b"{}", secret)


# --- callbacks -----------------------------------------------------------------


@pytest.fixture
def run() -> Run:
    return Run(
        task_name="a",
        scheduled_for=datetime(2024, 6, 1, 22, 30, tzinfo=UTC),
        started_at=datetime(2024, 6, 1, 22, 30, 1, tzinfo=UTC),
        attempt=1,
        reason="due",
        timezone="Europe/Berlin",
        stopping=threading.Event(),
    )


def test_a_report_is_about_the_day_of_its_occurrence(find: Find, run: Run) -> None:
    assert find("def write_report")["write_report"](7, run) == "report-7-2024-06-02.txt"


def test_long_work_ends_when_the_scheduler_stops(find: Find, run: Run) -> None:
    left = find("def fetch_prices")
    looks = count()
    run.stopping.is_set = lambda: next(looks) == 2
    left["fetch_prices"](run)
    assert next(looks) == 3


@pytest.mark.skipif(not settings.USE_TZ, reason="the example is of a project with aware times")
@pytest.mark.django_db
def test_closing_accounts_twice_closes_no_other(find: Find, run: Run) -> None:
    close = find("def close_forgotten_accounts")["close_forgotten_accounts"]
    for name, days in (("forgotten", 366), ("seen", 364)):
        User.objects.create_user(name, last_login=run.scheduled_for - timedelta(days))
    for _ in range(2):
        close(run)
        assert list(User.objects.filter(is_active=True).values_list("username", flat=True)) == [
            "seen"
        ]


@pytest.mark.django_db(transaction=True)
def test_greeting_comes_to_its_end(find: Find, run: Run) -> None:
    User.objects.create_user("ada")
    greet = find("async def greet_everybody")["greet_everybody"]

    async def greet_and_close() -> None:
        await greet(run)
        await sync_to_async(connections.close_all)()

    asyncio.run(greet_and_close())


def test_the_callbacks_shown_may_be_declared(
    runner: Runner, modules: dict[str, ModuleType], settings: Any
) -> None:
    page = DOCS["writing-callbacks.md"]
    names = []
    for block in page.blocks:
        if module_of(block) == "shop.tasks":
            left = runner.run(page, block)
            names += [name for name, value in left.items() if _is_callback(value)]
    args = {"write_report": [7], "charge": [7]}
    settings.SCHEDULED_TASKS = [
        {
            "name": name.replace("_", "-"),
            "cron": "0 7 * * *",
            "timezone": "UTC",
            "callback": f"shop.tasks.{name}",
            "args": args.get(name, []),
        }
        for name in names
    ]
    assert len(names) == 6
    assert checks.run_checks(tags=[TAG]) == []


def _is_callback(value: object) -> bool:
    return callable(value) and getattr(value, "__module__", "") == "<run_path>"
