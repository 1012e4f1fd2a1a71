"""A short notation for traces and verdicts, as the theory's examples are written.

``"10 IS[a] · 11 IEs[a] · 60 Due a · 61 RS a"``: seconds and an event, ``·`` between positions,
``+`` between events of one position. ``init 10 [a]`` is an IS and, a second later, an IEs;
``stop 65`` an SS and an SE; ``60 Freeze to 600`` ends before 600. Tasks are a (retry delay 300 s),
b (120 s), z (0 s); a' is a with another schedule. ``[a:skip]`` has an overlap policy.
``REf a retry 100`` and ``retry never`` state the retry; a last word ``handed``, ``storage``,
``valid`` or ``invalid`` what a record may add. ``{a 1,2, b *}`` before a trace are the minutes of
the cron expressions of its tasks; ``owed``, ``began``, ``ran``, ``failed`` and ``crashed`` stand
for the first positions of many traces.

A verdict has axiom and position of each violation, and its owner unless that is the scheduler;
``open a`` is an obligation that the end of the trace leaves open.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple

import pytest

from django_declarative_cron.theory import Violation, check

Record = dict[str, Any]
Mode = Literal["letter", "repaired"]
MODES: tuple[Mode, Mode] = ("letter", "repaired")
both_modes = pytest.mark.parametrize("mode", MODES)

START = datetime(2024, 1, 1, tzinfo=UTC)
DELAYS = {"a": 300, "b": 120, "z": 0}

_CRONS = re.compile(r"{(.*)} ")
_EVENT = re.compile(
    r"(?P<kind>[A-Za-z]+)(?:\[(?P<names>[^]]*)\])?(?: (?P<task>[a-z]'?)(?!\w))?"
    r"(?: to (?P<until>\d+))?(?: retry (?P<retry>\d+|never))?(?: (?P<word>\w+))?"
)
_WORDS = {
    "handed": {"handed": True},
    "storage": {"cause": "storage"},
    "valid": {"valid": True},
    "invalid": {"valid": False},
}
_SHORT = (
    (re.compile(r"\bcrashed\b"), "began · 70 Crash · init 80 [a]"),
    (re.compile(r"\bfailed\b"), "began · 62 REf a"),
    (re.compile(r"\bran\b"), "began · 62 REs a"),
    (re.compile(r"\bbegan\b"), "owed · 61 RS a"),
    (re.compile(r"\bowed\b"), "init 10 [a] · 60 Due a"),
    (re.compile(r"init (\d+) (\[[^]]*\])"), r"\1 IS\2 · {} IEs\2"),
    (re.compile(r"stop (\d+)"), r"\1 SS · {} SE"),
)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def trace(text: str, crons: Mapping[str, str] | None = None) -> list[Record]:
    """Read the notation; cron expressions that are given replace those of the text."""
    crons = {**crons_of(text), **(crons or {})}
    text = _CRONS.sub("", text)
    for short, long in _SHORT:
        text = short.sub(partial(_expanded, long), text)
    return [
        _record(part.partition(" "), event, position, crons)
        for position, part in enumerate(each.strip() for each in text.split("·"))
        for event in part.partition(" ")[2].split("+")
    ]


def crons_of(text: str) -> dict[str, str]:
    found = _CRONS.match(text)
    named = [each.split() for each in found[1].split(", ")] if found else []
    return {name: "* * * * *" if minute == "*" else f"{minute} * * * *" for name, minute in named}


def _expanded(long: str, short: re.Match[str]) -> str:
    return short.expand(long).format(int(short[1]) + 1) if short.re.groups else long


def _record(
    part: tuple[str, str, str], text: str, position: int, crons: Mapping[str, str]
) -> Record:
    found = _EVENT.fullmatch(text.strip())
    assert found, text
    kind, names, task = found["kind"], found["names"], found["task"]
    record: Record = {"at": at(float(part[0])), "event": kind, "position": position}
    if names is not None:
        record["registrations"] = [registration(name, crons) for name in names.split(",") if name]
    if found["until"]:
        record["until"] = at(float(found["until"]))
    if found["retry"]:
        record["retry_at"] = None if found["retry"] == "never" else at(float(found["retry"]))
    if task is not None:
        record["task"] = task[0]
        if kind == "Due" and task in crons:
            record["cron"] = crons[task]
    return record | _WORDS.get(found["word"], {})


def registration(text: str, crons: Mapping[str, str]) -> Record:
    name, _, policy = text.partition(":")
    entry: Record = {"name": name[0], "retry_delay": timedelta(seconds=DELAYS[name[0]])}
    entry |= {"cron": crons[name], "timezone": "UTC"} if name in crons else {}
    return entry | ({"overlap_policy": policy} if policy else {})


def said(violations: Iterable[Violation]) -> set[str]:
    return {
        f"open {each.task or each.axiom}"
        if each.owner == "inconclusive"
        else f"{each.axiom} {each.position}" + f" {each.owner}".removesuffix(" scheduler")
        for each in violations
    }


class Case(NamedTuple):
    """A trace with its verdict in each reading; a reading without one is not asked."""

    name: str
    text: str
    letter: str
    repaired: str

    def expected(self, mode: Mode) -> set[str]:
        verdict = self.letter if mode == "letter" else self.repaired
        return {part.strip() for part in verdict.split(",")} - {"ok"}

    def check(self) -> None:
        for mode in MODES:
            if self.expected(mode) != {""}:
                assert said(check(trace(self.text), mode)) == self.expected(mode), mode


def cases(table: str) -> list[Case]:
    """Read a table: names, and under each of them traces with their verdicts.

    ``trace → verdict`` is that of both readings, ``→ letter | repaired`` has one of each.
    """
    found: list[Case] = []
    name = text = ""
    for line in filter(None, textwrap.dedent(table).splitlines()):
        if not line.startswith(" "):
            name, text = line, ""
            continue
        text = f"{text} {line.strip()}".strip()
        if "→" in text:
            text, _, verdict = text.partition("→")
            letter, both, repaired = verdict.partition("|")
            repaired = repaired if both else letter
            found.append(Case(name, text.strip(), letter.strip(), repaired.strip()))
            text = ""
    assert not text, f"without a verdict: {text}"
    return found
