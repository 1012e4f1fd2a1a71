"""Write the reference tables of the site from the code that they describe."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management import load_command_class

APP = "django_declarative_cron"
_CHECKOUT = Path(__file__).parents[2]
_DIRECTIVE = re.compile(r"^```\{generated\} (.+)\n```$", re.MULTILINE)


def expand(text: str) -> str:
    """Return a page with its generated parts in it."""
    return _DIRECTIVE.sub(lambda match: generate(match[1]).rstrip("\n"), text)


def generate(name: str) -> str:
    """Return the Markdown of a generated part, by its name and an optional argument."""
    key, *arguments = name.split()
    return PARTS[key](*arguments)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())


def _code(text: str) -> str:
    return f"`{text}`"


def _markdown(text: str) -> str:
    return text.replace("``", "`")


def _summary(thing: Any) -> str:
    """Return the first paragraph of a docstring as one line of Markdown."""
    return _markdown(" ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split()))


def _arguments(thing: Any) -> dict[str, str]:
    """Return the texts of the section ``Args:`` of a docstring, by name."""
    section = (inspect.getdoc(thing) or "").partition("Args:\n")[2]
    found = re.findall(r"^    (\w+): (.+(?:\n {5,}.+)*)", section, re.MULTILINE)
    return {name: _markdown(" ".join(text.split())) for name, text in found}


def in_words(value: Any) -> str:
    """Write a default as the pages do."""
    if isinstance(value, timedelta):
        return f"{value.days} days" if value.days else f"{value.seconds} s"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def options() -> str:
    """Write the table of the options in ``DECLARATIVE_CRON``."""
    from django_declarative_cron.core.options import Options

    defaults = Options()
    rows = (
        (_code(each.name), in_words(getattr(defaults, each.name)), _sentence(each.metadata["help"]))
        for each in fields(Options)
    )
    return _table(("option", "default", "description"), rows)


def keys() -> str:
    """Write the table of the keys of the long form."""
    from django_declarative_cron.core.declarations.keys import DEFAULTS, KEYS, REQUIRED

    said = {key: _code(_written(value)) for key, value in DEFAULTS.items()}
    said |= dict.fromkeys(REQUIRED, "required")
    rows = ((_code(name), said.get(name, ""), _sentence(key.help)) for name, key in KEYS.items())
    return _table(("key", "default", "description"), rows)


def job() -> str:
    """Write the table of the keys of ``options``."""
    from django_declarative_cron.core.declarations.options import JOB_OPTIONS

    rows = [
        (_code(name), _literal(each.default), _sentence(each.help))
        for name, each in JOB_OPTIONS.items()
    ]
    retry = (_code("retry"), "see below", "The retry policy: a dict.")
    return _table(("key", "default", "description"), [*rows, retry])


def retry() -> str:
    """Write the table of the keys of a retry policy."""
    from django_declarative_cron.core.retry import RetryPolicy

    said = _arguments(RetryPolicy)
    rows = (
        (_code(name), _literal(default), _sentence(said[name]))
        for name, default in RetryPolicy().as_data().items()
    )
    return _table(("key", "default", "description"), rows)


def _literal(value: Any) -> str:
    return "" if value is None else _code(_written(value))


def _written(value: Any) -> str:
    return repr(list(value) if isinstance(value, tuple) else value).replace("'", '"')


def checks(levels: str) -> str:
    """Write the table of the checks of some levels: ``E``, or ``WI``."""
    from django_declarative_cron.core.declarations.problems import Check

    rows = (
        (_code(str(each)), _sentence(each.help), each.fix) for each in Check if each.level in levels
    )
    return _table(("id", "message", "fix"), rows)


def events(group: str) -> str:
    """Write the table of the events of ``runs``, of ``tasks`` or of the ``scheduler``."""
    from django_declarative_cron.core.events import ALL, RunEvent, TaskEvent

    runs = {event for event in ALL if issubclass(event, RunEvent)}
    tasks = {event for event in ALL if issubclass(event, TaskEvent)} - runs
    groups = {"runs": runs, "tasks": tasks, "scheduler": {*ALL} - runs - tasks}
    known = [event for event in ALL if event in groups[group]]
    common = {"at", "task_name", "facts"}
    rows = (
        (
            _code(event.__name__),
            event.level,
            " ".join(_code(each.name) for each in fields(event) if each.name not in common),
            _summary(event),
        )
        for event in known
    )
    return _table(("event", "level", "fields", "published when"), rows)


def metrics() -> str:
    """Write the table of the metrics."""
    from django_declarative_cron.monitoring.metric_defs import METRICS

    rows = (
        (_code(each.exposed), each.kind, " ".join(map(_code, each.labels)), each.source, each.help)
        for each in METRICS
    )
    return _table(("metric", "kind", "labels", "source", "description"), rows)


def commands() -> str:
    """Write the table of the subcommands of ``cron``."""
    from django_declarative_cron.management.commands.cron import SUBCOMMANDS

    rows = (
        (
            _code(f"cron {name}"),
            " ".join(_code(option) for option, _ in _options(each.arguments)),
            _sentence(each.help),
        )
        for name, each in SUBCOMMANDS.items()
    )
    return _table(("command", "options", "description"), rows)


def runscheduler() -> str:
    """Write the table of the options of ``runscheduler``."""
    command = load_command_class(APP, "runscheduler")
    rows = ((_code(name), _sentence(text)) for name, text in _options(command.add_arguments))
    return _table(("option", "description"), rows)


def _options(add_arguments: Callable[[Any], None]) -> Iterator[tuple[str, str]]:
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    for action in parser._actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            text = (action.help or "").replace("%(default)s", str(action.default))
            yield action.option_strings[0], text


def _sentence(text: str) -> str:
    """Begin with a capital letter, unless the text begins with code or has it, and end it."""
    first = text.split(" ", 1)[0]
    return (text if first != first.lower() else text[:1].upper() + text[1:]).rstrip(".") + "."


def extras() -> str:
    """Write the table of the extras, with the comments of ``pyproject.toml``."""
    project = (_CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    section = project.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    found = re.findall(r"^(\w+) = \[([^#\n]*)\] *# (.+)$", section, re.MULTILINE)
    rows = (
        (_code(name), ", ".join(re.findall(r'"([\w-]+)', packages)), _sentence(text))
        for name, packages, text in found
    )
    return _table(("extra", "installs", "purpose"), rows)


def faults() -> str:
    """Write the table of the faults of the mutation tests, and what detects them."""
    recorded = json.loads((_CHECKOUT / "tests/simulation/catches.json").read_text("utf-8"))
    rows = (
        (name, str(each["caught"]), ", ".join(sorted(each["first"])))
        for name, each in recorded.items()
    )
    return _table(("fault", "scenarios", "detected by"), rows)


def conformance() -> str:
    """Write the requirements of the specifications with the tests that show them."""
    from tests.docs.conformance import marked, page

    return page(marked())


PARTS: dict[str, Callable[..., str]] = {
    each.__name__: each
    for each in (
        *(options, keys, job, retry, checks, events, metrics),
        *(commands, runscheduler, extras, faults, conformance),
    )
}
