"""What the pages say is what the code does: lists, defaults, levels, links."""

from __future__ import annotations

import argparse
import logging
import re
import signal
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import get_args

import pytest
from _pytest.fixtures import FixtureFunctionDefinition
from django.contrib import admin
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from django_declarative_cron import conf, exceptions, models, signals
from django_declarative_cron.admin.actions import ACTIONS
from django_declarative_cron.admin.badges import REASON_WORDS
from django_declarative_cron.core import channels, events, monitor
from django_declarative_cron.core.decide import Reason
from django_declarative_cron.core.declarations.keys import DEFAULTS, KEYS
from django_declarative_cron.core.declarations.problems import LINTED, Check
from django_declarative_cron.core.event_sink import TYPES
from django_declarative_cron.core.missed import MISSED
from django_declarative_cron.core.options import Options
from django_declarative_cron.core.overlap import POLICIES
from django_declarative_cron.core.status import Status
from django_declarative_cron.cron import posix_equivalent
from django_declarative_cron.management.commands.cron import SUBCOMMANDS
from django_declarative_cron.runtime.loop import LIMIT
from django_declarative_cron.runtime.probes import PATHS
from django_declarative_cron.runtime.work import Run
from django_declarative_cron.testing import Simulation, plugin

from ..conftest import CHECKOUT, PACKAGE
from .pages import DOCS, PAGES, README, Page, code, codes, read

# Of which no page may speak: either it is not so, or it is not in this version.
NEVER_SAID = [
    *("exactly once", "coming soon", "in a later version", "will be added", "TODO"),
]


# --- pages and links -----------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Page) -> None:
    assert list(broken_links(page)) == []


def broken_links(page: Page) -> Iterator[str]:
    for link in page.links:
        if link.startswith(("https://", "http://")):
            continue
        file, _, anchor = link.partition("#")
        if file.endswith(".png"):
            if not (page.path.parent / file).is_file():
                yield link
            continue
        target = _page(page.path.parent / file) if file else page
        if target is None or (anchor and anchor not in target.anchors):
            yield link


def _page(path: Path) -> Page | None:
    return read(path) if path.is_file() else None


@pytest.mark.parametrize("page", DOCS.values(), ids=lambda page: page.name)
def test_no_link_leads_out_of_the_site(page: Page) -> None:
    assert [link for link in page.links if link.startswith("../")] == []


def test_a_link_that_leads_nowhere_would_be_found() -> None:
    text = (
        "[a](missing.md) [b](settings.md#nothing) [c](#there) [d](checks.md#errors) "
        "![e](none.png)\n## There"
    )
    page = Page(CHECKOUT / "docs" / "made-up.md", text)
    assert list(broken_links(page)) == ["missing.md", "settings.md#nothing", "none.png"]


def test_the_readme_links_every_page() -> None:
    assert {f"docs/{name}" for name in DOCS} <= set(README.links)


def test_the_site_has_every_page() -> None:
    lists = [block for block in DOCS["index.md"].blocks if block.language == "{toctree}"]
    listed = {
        f"{line}.md" for block in lists for line in block.text.splitlines() if line[:1].isalpha()
    }
    assert listed | {"index.md"} == set(DOCS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_is_said_that_does_not_hold(page: Page) -> None:
    text = " ".join(page.text.split()).casefold()
    assert [words for words in NEVER_SAID if words.casefold() in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_path_of_somebodys_machine_is_shown(page: Page) -> None:
    assert absolute_paths(page.text) == []


def absolute_paths(text: str) -> list[str]:
    found = re.findall(r"(?:^|(?<=[\s`'\"(]))/\w+/[\w/.-]+", text, re.MULTILINE)
    # That one is an address, on every machine.
    return [path for path in found if not path.startswith("/ojs/")]


def test_an_absolute_path_would_be_found() -> None:
    text = "`/srv/shop/manage.py` ../shop/a.md http://127.0.0.1/admin/ (/etc/hosts)"
    assert absolute_paths(text) == ["/srv/shop/manage.py", "/etc/hosts"]


def test_the_readme_begins_with_two_sentences_and_then_the_two_commands() -> None:
    first = README.text.split("\n\n")[1]
    assert len(re.findall(r"\.(?=\s|$)", first)) == 2
    commands = [block.text for block in README.blocks if block.language == "sh"]
    assert len(commands) == 2
    example = read(CHECKOUT / "example_project" / "README.md")
    assert commands[0] in [block.text for block in example.blocks]
    script = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8")
    assert commands[1].strip() in [line.strip() for line in script.splitlines()]
    assert README.text.index(commands[1]) < README.text.index("```python")


# --- settings ------------------------------------------------------------------


def test_every_default_of_a_key_is_that_of_the_code(modules: object) -> None:
    entry = {"name": "a", "cron": "0 7 * * *", "callback": "shop.tasks.send_digests"}
    (declaration,) = conf.declarations([entry])
    data = declaration.as_data()
    known = {key: value for key, value in DEFAULTS.items() if key in data}
    assert len(known) > 10
    assert {key: list(value) if value == () else value for key, value in known.items()} == {
        key: data[key] for key in known
    }


def test_every_choice_of_a_key_is_in_its_text() -> None:
    for each in KEYS.values():
        if each.choices:
            said = {word for word in codes(each.help) if word.startswith('"')}
            assert said == {f'"{value}"' for value in each.choices}


def test_what_is_refused_is_to_be_written_as_the_table_says() -> None:
    rows = DOCS["settings.md"].table("refused", "write")
    assert len(rows) > 3
    for row in rows:
        assert posix_equivalent(code(row["refused"])) == code(row["write"])


# --- tables of the pages that list what the code has ---


REASONS = ["due", "boot", "retry", "orphaned", "manual", "backfill"]
INTERNAL = {
    *("new_scheduler", "call", "deliver", "run_to_next_end", "forget", "act", "actions"),
    *("in_flight", "pace_of_heartbeats", "described", "stir", "withdraw"),
}
SIMULATED = {name for name in vars(Simulation) if not name.startswith("_")} - INTERNAL
FIXTURES = {"--cron-snapshot-rewrite"} | {
    name for name, each in vars(plugin).items() if isinstance(each, FixtureFunctionDefinition)
}
ERRORS = {
    name
    for name, each in vars(exceptions).items()
    if isinstance(each, type) and issubclass(each, exceptions.DeclarativeCronError)
    if not name.startswith("_") and name != "DeclarativeCronError"
}
STATUSES = [str(each).replace("_", " ") for each in Status]
COMMANDS = [f"cron {name}" for name in SUBCOMMANDS]
EVENTS = ("event", "level", "fields", "published when")
OPTION = ("default", "description")


# A list has the order of the rows.
@pytest.mark.parametrize(
    ("page", "header", "expected"),
    [
        ("writing-callbacks.md", ("field", "description"), [each.name for each in fields(Run)]),
        ("semantics.md", ("reason", "cause of the run"), REASONS),
        ("semantics.md", ("outcome", "meaning"), {*models.Outcome.values}),
        ("commands.md", ("command", "options", "description"), COMMANDS),
        ("commands.md", ("status", "meaning"), STATUSES),
        ("events.md", ("type", "published when", "fields of `data`"), [*TYPES]),
        ("events.md", EVENTS, {each.__name__ for each in events.ALL}),
        ("monitoring.md", ("key of `MONITOR`", *OPTION), [*monitor._OPTION]),
        ("monitoring.md", ("key of `NOTIFY`", *OPTION), {*channels._READERS}),
        ("monitoring.md", ("occasion", "when"), [*channels.OCCASIONS]),
        ("testing.md", ("name", "description"), SIMULATED),
        (
            "testing.md",
            ("fixture or option", "description"),
            FIXTURES,
        ),
        ("errors.md", ("error", "details", "raised when"), ERRORS),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else "",
)
def test_a_table_lists_what_the_code_has(
    page: str, header: tuple[str, ...], expected: list[str] | set[str]
) -> None:
    rows = DOCS[page].table(*header)
    found = [code(row[header[0]]) for row in rows]
    assert found == expected if isinstance(expected, list) else sorted(found) == sorted(expected)
    assert all(len(row[header[-1]]) > 3 for row in rows)


# --- errors and extras ---------------------------------------------------------


MADE = [
    exceptions.RegistrationsNotArrayError(),
    exceptions.RegistrationShapeError(0, None),
    exceptions.CalendarError("holidays", "is not there"),
    exceptions.InvalidRegistrationError("name", "", "is empty"),
    exceptions.ScheduleDuplicateTaskError("a"),
    exceptions.CronExpressionInvalidError("x", "minute", "is no number"),
    exceptions.NegativeRetryDelayError(-1),
    exceptions.InvalidCronExpressionError("x", "minute", "is no number"),
    exceptions.FieldParseError("is no number", "x", "minute"),
    exceptions.CronCalculationError("x", "2024-01-01T00:00:00Z", ValueError()),
    exceptions.ScheduleTaskError("a", "", ValueError()),
    exceptions.StopSchedulerError(ValueError()),
    exceptions.TaskListMismatchError(["a"], ["b"]),
    exceptions.TaskTryDeserializeError("damaged"),
    exceptions.TaskMissingFieldError("name"),
    exceptions.TaskInvalidTypeError("name", 1, "string"),
    exceptions.TaskInvalidValueError("name", "", "is empty"),
    exceptions.TaskInvalidStructureError(None),
]


def test_each_error_has_the_details_that_are_said() -> None:
    rows = DOCS["errors.md"].table("error", "details", "raised when")
    said = {code(row["error"]): set(codes(row["details"])) for row in rows}
    assert said == {type(error).__name__: set(error.details) for error in MADE}


def test_the_dependencies_are_those_that_are_said() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = DOCS["security.md"].text
    assert len(project["dependencies"]) == 3
    assert "The package requires Django, `cron-descriptor` and `tzdata`" in text
    extras = project["optional-dependencies"]
    for name, packages in extras.items():
        assert f"| `{name}` | {', '.join(map(package_of, packages))} |" in text


def package_of(requirement: str) -> str:
    return re.split(r"[\[>]", requirement)[0]


# --- checks --------------------------------------------------------------------


def test_errors_stand_apart_from_warnings_and_notes() -> None:
    errors, _, remarks = DOCS["checks.md"].text.partition("## Warnings and notes")
    assert {check.level for check in Check if f"`{check}`" in errors} == {"E"}
    assert {check.level for check in Check if f"`{check}`" in remarks} == {"W", "I"}


def test_each_remark_on_a_schedule_has_its_page() -> None:
    pages = re.findall(r"^### ([WI][0-9]{3})$", DOCS["checks.md"].text, re.MULTILINE)
    assert sorted(pages) == sorted(each.rpartition(".")[2] for each in LINTED)
    assert {each.page for each in LINTED} == {f"docs/checks.md#{page.lower()}" for page in pages}


# --- events --------------------------------------------------------------------


def test_events_of_tasks_are_those_whose_names_start_with_task() -> None:
    assert all(row[EVENTS[-1]].endswith(".") for row in DOCS["events.md"].table(*EVENTS))
    for event in events.ALL:
        assert event.__name__.startswith("Task") == issubclass(event, events.TaskEvent)


def test_the_log_line_is_worded_as_shown(caplog: pytest.LogCaptureFixture) -> None:
    (shown,) = [block.text for block in DOCS["events.md"].blocks if block.language == "text"]
    ended = datetime(2024, 1, 1, 10, 0, 2, 250_000, tzinfo=UTC)
    failed = events.TaskRunFailed(
        at=ended,
        task_name="water",
        duration=2.2,
        error="RuntimeError: the barrel is empty",
        next_retry_at=ended + timedelta(minutes=5),
    )
    with caplog.at_level(logging.INFO, "django_declarative_cron"):
        signals.publish([failed])
    (record,) = caplog.records
    assert record.getMessage() == shown.strip()
    assert vars(record)["event"] == "TaskRunFailed"


# --- runs ----------------------------------------------------------------------


def test_the_reasons_are_those_of_the_code() -> None:
    rows = DOCS["writing-callbacks.md"].table("field", "description")
    (reason,) = (row for row in rows if code(row["field"]) == "reason")
    assert codes(reason["description"]) == REASONS
    assert set(REASONS) == set(get_args(Reason))


def test_the_overlap_policies_are_those_of_the_code() -> None:
    rows = DOCS["semantics.md"].table("policy", "effect", "default of")
    assert sorted(code(row["policy"]) for row in rows) == sorted(POLICIES)


def test_the_outcomes_are_those_of_the_code() -> None:
    rows = DOCS["semantics.md"].table("outcome", "meaning")
    why = {code(row["outcome"]): set(codes(row["meaning"])) for row in rows}
    assert why["missed"] == set(MISSED)
    assert why["skipped"] | why["missed"] == REASON_WORDS.keys() - set(get_args(Reason))


def test_the_layout_has_every_part_of_the_package() -> None:
    rows = DOCS["contributing.md"].table("folder", "holds", "may import")
    said = {name.removesuffix(".py").rstrip("/") for row in rows for name in codes(row["folder"])}
    parts = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} | {"conf", "signals"}
    assert said == parts - {"migrations"}


PATHS_OF_CODE = (
    "Path of one declaration",
    "Path of one occurrence",
    "Path of one failed result",
    "Path of one new overlap policy",
    "Path of one new command line option",
    "Path of one new admin column",
)


def _steps(heading: str) -> list[tuple[str, list[str]]]:
    """Return the files of a path through the code, each with the names it lists."""
    section = DOCS["contributing.md"].text.split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    lines = [line for line in section.splitlines() if re.match(r"\d+\. ", line)]
    return [(found[0], found[1:]) for found in map(codes, lines)]


@pytest.mark.parametrize("heading", PATHS_OF_CODE)
def test_a_path_through_the_code_names_at_most_twelve_files(heading: str) -> None:
    files = [file for file, _ in _steps(heading)]
    assert 1 <= len(files) == len(set(files)) <= 12


@pytest.mark.parametrize(
    ("file", "name"),
    [(file, name) for path in PATHS_OF_CODE for file, names in _steps(path) for name in names],
)
def test_a_path_through_the_code_has_names_that_exist(file: str, name: str) -> None:
    module = import_module(f"django_declarative_cron.{file.removesuffix('.py').replace('/', '.')}")
    assert attrgetter(name)(module) is not None


def test_a_simulation_is_made_as_described() -> None:
    assert '`Simulation(start, time_zone="UTC", instances=1)`' in DOCS["testing.md"].text
    sim = Simulation("2024-01-01T00:00Z")
    assert (sim.time_zone, sim[0].is_active) == ("UTC", False)
    with pytest.raises(IndexError):
        _ = sim[1]


# --- commands ------------------------------------------------------------------


def test_the_codes_of_a_second_signal_are_right() -> None:
    rows = DOCS["commands.md"].table("code", "cause")
    (at_once,) = (row["cause"] for row in rows if row["code"] == "128 + N")
    codes_said = {int(number): name for number, name in re.findall(r"(\d+) for (\w+)", at_once)}
    assert codes_said == {128 + each: each.name for each in (signal.SIGINT, signal.SIGTERM)}


def command_lines() -> list[str]:
    # What a shell does with the output is not the command's.
    found = [
        line.removeprefix("$ python manage.py ").partition(" > ")[0]
        for page in PAGES
        for block in page.blocks
        for line in block.text.splitlines()
        if line.startswith("$ python manage.py ")
    ]
    assert len(found) > 10
    return found


@pytest.mark.parametrize("line", command_lines())
def test_every_command_line_is_understood(line: str) -> None:
    understood(line)


def understood(line: str) -> argparse.Namespace:
    name, *words = re.findall(r'"[^"]*"|\S+', line)
    app = get_commands()[name]
    command = app if isinstance(app, BaseCommand) else load_command_class(app, name)
    return command.create_parser("manage.py", name).parse_args([word.strip('"') for word in words])


@pytest.mark.parametrize("line", ["cron enlighten water", "cron list --all", "runscheduler --fast"])
def test_a_command_line_that_is_wrong_would_be_found(line: str) -> None:
    with pytest.raises(CommandError):
        understood(line)


# --- admin and deploying -------------------------------------------------------


def test_the_permissions_of_acts_are_those_of_the_code() -> None:
    rows = DOCS["admin.md"].table("action", "permission")
    assert {row["action"]: code(row["permission"]) for row in rows} == {
        str(act.label): act.codename for act in ACTIONS.values()
    }
    known = {codename for codename, _ in models.ScheduledTask._meta.permissions}
    # That of the HTTP binding stands on its own page.
    assert {code(row["permission"]) for row in rows} == known - {"register_scheduledtask"}


def test_the_words_of_the_admin_are_the_admins() -> None:
    bold = set(re.findall(r"\*\*([^*]+)\*\*", DOCS["tutorial.md"].prose))
    assert models.ScheduledTask in admin.site._registry
    plural = str(models.ScheduledTask._meta.verbose_name_plural).capitalize()
    assert bold == {str(act.label) for act in ACTIONS.values()} | {plural}


def test_the_container_waits_longer_than_the_scheduler() -> None:
    text = DOCS["deploying.md"].text
    names = "stop_grace_period:|terminationGracePeriodSeconds:|TimeoutStopSec="
    waits = re.findall(rf"(?:{names}) ?(\d+)s?$", text, re.MULTILINE)
    assert len(waits) == 3
    for seconds in waits:
        assert timedelta(seconds=int(seconds) - 2) >= Options().GRACE
    assert f"which is {Options().GRACE.seconds} seconds" in text
    assert f"within `LEASE`, {Options().LEASE.seconds} seconds" in text


def test_what_starts_the_scheduler_elsewhere_is_understood() -> None:
    text = DOCS["deploying.md"].text
    lists = re.findall(r'\["(?:CMD", ")?python", "manage.py", ([^\]]*)\]', text)
    lines = [" ".join(re.findall(r'"([^"]*)"', words)) for words in lists]
    lines += re.findall(r"^ExecStart=\S+ manage.py (.*)$", text, re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        understood(line)


def test_the_probes_are_those_that_are_answered() -> None:
    paths = re.findall(r"httpGet: {path: (\S+),", DOCS["deploying.md"].text)
    assert set(paths) == set(PATHS)
    for path in PATHS:
        assert f"`GET {path}`" in DOCS["commands.md"].text
    assert f"hung for more than {LIMIT:.0f} seconds" in DOCS["commands.md"].text


def test_the_extras_are_those_of_the_distribution() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [
        group
        for page in PAGES
        for group in re.findall(r"(?:'\.|django-declarative-cron)\[([\w,]+)\]", page.text)
    ]
    named = {extra for group in groups for extra in group.split(",")}
    assert {"admin", "metrics", "tracing"} <= named
    assert named <= project["project"]["optional-dependencies"].keys()
