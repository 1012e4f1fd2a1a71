"""The dict form of an item: an OJS CronJob (002 CronJob Structure), and what is ours beside.

An entry that leaves them out has the dialect ``ojs``, the zone UTC, the overlap policy
``skip`` and the retry policy of 002. What means nothing here is refused by name; only what
002 leaves to the scheduler is ignored, with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast
from zoneinfo import ZoneInfo

from ..cron import CronExpression, UnknownZoneError, validate_zone
from ..exceptions import echoed
from .declaration import Declaration, Manner, Target, Terms
from .entry_keys import (
    DIALECT,
    KINDS,
    WHAT_RUNS,
    judge_choice,
    judge_the_rest,
    refuse_unknown_keys,
    well_typed,
)
from .entry_operating import read_operating
from .entry_options import JobOptions, read_job, read_retry
from .entry_runner import read_runner
from .limits import LONGEST_NAME, MOST_WORDS, too_long, too_many
from .monitor import Monitor, read_monitor
from .nearest import listed
from .overlap import Policy
from .parts import (
    flaw_of_name,
    judge_delay,
    plain_text,
    read_cron,
    refuse_duplicate,
    refuse_name,
    resolve_callback,
    resolve_command,
)
from .plain import flaw_of_text
from .problem import Check
from .reading import Declared, Item
from .retry import Retry
from .schedule import Fold, Gap, Schedule
from .spread import offset_of

DEFAULT_DIALECT: Final = "ojs"
DEFAULT_ZONE: Final = "UTC"
DEFAULT_OVERLAP: Final = "skip"

_NAME = re.compile(r"[a-z0-9][a-z0-9\-.]*")


def read_entry(item: Item) -> Declared | None:
    """Understand a dict entry; what is wrong is reported to the item.

    Order: known keys, types, name, what runs, duplicate, cron, zone, retry, the rest.
    """
    name = item.given.get("name")
    flaw = _flaw_of_name(name) if isinstance(name, str) else None
    if isinstance(name, str) and flaw is None:
        # Known early, so that what is reported before the name's turn can be found by it.
        item.name = plain_text(name)
    refuse_unknown_keys(item, item.allowed(KINDS))
    typed = well_typed(item)
    if flaw is not None:
        refuse_name(item, name, flaw, _hint_for(name))
    target = _what_runs(item, typed)
    refuse_duplicate(item)
    expression = _expression(item, typed)
    zone = _zone(item, typed.get("timezone", DEFAULT_ZONE))
    if "retry_delay" in typed:
        judge_delay(item, typed["retry_delay"], "retry_delay")
    retry = read_retry(item, typed)
    judge_the_rest(item, typed)
    job = read_job(item, typed.get("options", {}))
    runner = read_runner(item, typed, target, job.timeout)
    monitor = _monitor(item, typed)
    operating = read_operating(item, typed)
    if not item.is_sound:
        return None
    schedule = Schedule(
        cast(CronExpression, expression),
        cast(ZoneInfo, zone),
        cast(Gap, typed.get("gap", "skip")),
        cast(Fold, typed.get("fold", "first")),
        offset=offset_of(typed["name"], operating.spread),
        exclusion=item.reader.calendars.exclusion(operating.exclude) if operating.exclude else None,
    )
    manner = _manner(typed, cast(Target, target), retry, job)
    manner = replace(manner, runner=runner, monitor=monitor, operating=operating)
    declaration = Declaration(typed["name"], Terms.of(schedule, manner))
    return item.read(declaration, _flaw_of_name, zone_is_said="timezone" in typed)


def _manner(typed: Mapping[str, Any], target: Target, retry: Retry, job: JobOptions) -> Manner:
    return Manner(
        target=replace(target, args=tuple(typed.get("args", ()))),
        retry=retry,
        enabled=typed.get("enabled", True),
        description=typed.get("description") or "",
        overlap_policy=cast(Policy, typed.get("overlap_policy", DEFAULT_OVERLAP)),
        timeout=job.timeout,
        atomic=typed.get("atomic", False),
        queue=job.queue,
        tags=job.tags,
        meta=job.meta,
        options=dict(typed.get("options", {})),
    )


def _flaw_of_name(name: str) -> str | None:
    if (flaw := flaw_of_name(name)) is not None or _NAME.fullmatch(name):
        return flaw
    characters = "lower-case letters, digits, `-` and `.`, the first a letter or digit"
    return f"of a dict entry must be made of {characters}, found {echoed(name)!r}"


def _hint_for(name: str) -> str:
    made = re.sub(r"[^a-z0-9.-]+", "-", name.lower())[:40].strip("-.")
    return f'Write a name such as "{made or "daily-report"}".'


def _what_runs(item: Item, typed: Mapping[str, Any]) -> Target | None:
    choices = item.allowed(WHAT_RUNS)
    said = [key for key in choices if key in item.given]
    if len(said) != 1:
        field = said[1] if said else choices[0]
        one = f"exactly one of {listed(choices)}" if len(choices) > 1 else "it"
        reason = f"stands beside `{said[0]}`" if said else "is missing"
        reason = f"{reason}: {one} says what runs"
        hint = 'Write "callback": "app.module.function" or "command": ["name", "argument"].'
        item.refuse_field(Check.WHAT_RUNS, field, item.given.get(field), reason, hint)
        return None
    (key,) = said
    if key not in typed:
        return None
    if key == "command":
        words = _words(item, typed["command"])
        return None if words is None else resolve_command(item, words)
    return resolve_callback(item, typed[key], key)


def _words(item: Item, command: Any) -> tuple[str, ...] | None:
    words = (command,) if isinstance(command, str) else tuple(command)
    if (flaw := too_many(words, MOST_WORDS)) is not None:
        item.refuse_field(Check.TOO_LONG, "command", command, flaw)
        return None
    flaw, hint = _flaw_of_words(command, words)
    if flaw is None:
        return tuple(map(plain_text, words))
    item.refuse_field(Check.COMMAND, "command", command, flaw, hint)
    return None


def _flaw_of_words(command: Any, words: tuple[Any, ...]) -> tuple[str | None, str]:
    hint = 'Write a list of words, such as ["clearsessions", "--verbosity", "0"].'
    if not all(isinstance(word, str) for word in words):
        return "must be a list of texts", hint
    if not words or not words[0]:
        return "must not be empty", hint
    if isinstance(command, str) and len(command.split()) > 1:
        written = echoed(str(command.split()))
        return "must be a list when it has several words", f"Write {written}."
    return next((flaw for word in words if (flaw := flaw_of_text(word))), None), hint


def _monitor(item: Item, typed: Mapping[str, Any]) -> Monitor | None:
    if "monitor" not in typed:
        return None
    try:
        return read_monitor(typed["monitor"])
    except ValueError as error:
        # What was given may have an address in it that is nobody else's business.
        hint = 'Write True, an address, or {"slug": "…", "margin": 300}.'
        item.refuse_field(Check.KEY_VALUE, "monitor", "…", str(error), hint)
        return None


def _expression(item: Item, typed: Mapping[str, Any]) -> CronExpression | None:
    dialect = typed.get("dialect", DEFAULT_DIALECT)
    if not judge_choice(item, "dialect", dialect, DIALECT) or "cron" not in typed:
        return None
    return read_cron(item, typed["cron"], dialect)


def _zone(item: Item, name: str) -> ZoneInfo | None:
    if (reason := too_long(name, LONGEST_NAME)) is not None:
        item.refuse_field(Check.TOO_LONG, "timezone", name, reason)
        return None
    try:
        return validate_zone(name)
    except UnknownZoneError as error:
        near = f"; did you mean `{error.suggestion}`?" if error.suggestion else ""
        reason = f"{echoed(name)!r} {error.reason}{near}"
        hint = "Write a name such as `Europe/Berlin`, or `UTC`."
        item.refuse_field(Check.ZONE, "timezone", name, reason, hint)
        return None
