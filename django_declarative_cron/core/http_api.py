"""Convert CronJob objects to dict entries, and define job ids and access tokens; pure.

Clients of Open Job Spec differ: the expression is called ``cron`` or ``expression``, and the job is
at the top level or in ``job_template``. Each form is converted to a dict entry as in
``SCHEDULED_TASKS``, so that both have the same validation. Keys that only settings may contain,
such as an import path, are refused before.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from uuid import UUID

from .declarations.keys import MANAGED

IGNORED: Final = (
    *MANAGED,
    "id",
    "status",
    "state",
    "problem",
    "updated_at",
    "last_job_id",
    "specversion",
)
"""Keys that only the scheduler sets (CRON-06), in the spellings of the known clients."""

FORBIDDEN: Final = ("callback", "command", "dialect", "retry_delay", "runner", "atomic", "monitor")
"""Keys that select code or addresses, which only the settings may do."""

_INTO_OPTIONS: Final = ("queue", "timeout", "timeout_ms", "retry", "tags", "meta")
_TEMPLATE: Final = "job_template"
_MOST_MILLISECONDS: Final = 10**12


class Flaw(NamedTuple):
    """A problem of an object, found before its validation as an entry.

    Args:
        field: the key.
        reason: the problem, as a phrase after the name of the key.
    """

    field: str
    reason: str


def entry_of(posted: Mapping[str, Any]) -> tuple[dict[str, Any], list[Flaw]]:
    """Return the dict entry for a posted object (002 Complete CronJob Object).

    Returns:
        the entry without invalid keys, and the problems: contradictions and refused keys.
    """
    gathering = _Gathering(posted)
    gathering.template()
    if "expression" in gathering.entry:
        expression = gathering.entry.pop("expression")
        gathering.put(gathering.entry, "cron", expression, "expression")
    gathering.forbid()
    gathering.options()
    entry = {key: value for key, value in gathering.entry.items() if value is not None}
    return entry, gathering.flaws


class _Gathering:
    """Convert one object to an entry, and collect the problems."""

    def __init__(self, posted: Mapping[str, Any]) -> None:
        self.entry = {key: value for key, value in posted.items() if key not in IGNORED}
        self.flaws: list[Flaw] = []

    def template(self) -> None:
        """Move the keys of ``job_template`` to the top level."""
        template = self.entry.pop(_TEMPLATE, None)
        if not isinstance(template, dict | None):
            self.flaws.append(Flaw(_TEMPLATE, "must be an object"))
            return
        for key, value in (template or {}).items():
            if key not in ("type", "args", "options", *_INTO_OPTIONS, *IGNORED):
                self.flaws.append(Flaw(f"{_TEMPLATE}.{key}", "is not a known key"))
            elif key not in IGNORED:
                self.put(self.entry, key, value, f"{_TEMPLATE}.{key}")

    def put(self, into: dict[str, Any], key: str, value: Any, said_as: str) -> None:
        """Set a key that may occur in two places, if both values are equal."""
        if into.get(key) is not None and into[key] != value:
            self.flaws.append(Flaw(said_as, f"contradicts `{key}`: set one of them"))
        else:
            into[key] = value

    def forbid(self) -> None:
        """Remove the keys that are refused over HTTP."""
        for key in FORBIDDEN:
            if key in self.entry:
                del self.entry[key]
                reason = "is not accepted over HTTP: it is for SCHEDULED_TASKS"
                self.flaws.append(Flaw(key, reason))

    def options(self) -> None:
        """Move job options into ``options``, with durations as 002 defines them."""
        beside = {key: self.entry.pop(key) for key in _INTO_OPTIONS if key in self.entry}
        given = self.entry.get("options")
        if not isinstance(given, dict | None):
            return
        options = {key: value for key, value in (given or {}).items() if value is not None}
        for key, value in beside.items():
            if value is not None:
                self.put(options, key, value, key)
        if "timeout_ms" in options:
            number = self._milliseconds(options.pop("timeout_ms"), "options.timeout_ms")
            if number is not None:
                self.put(options, "timeout", math.ceil(number / 1000), "timeout_ms")
        if isinstance(options.get("retry"), dict):
            options["retry"] = self._with_durations(options["retry"])
        if options or "options" in self.entry:
            self.entry["options"] = options

    def _with_durations(self, retry: Mapping[str, Any]) -> dict[str, Any]:
        found = {key: value for key, value in retry.items() if value is not None}
        for key in ("initial_interval", "max_interval"):
            said_as = f"options.retry.{key}_ms"
            number = None
            if f"{key}_ms" in found:
                number = self._milliseconds(found.pop(f"{key}_ms"), said_as)
            if number is not None:
                self.put(found, key, f"PT{number / 1000:.3f}S", said_as)
        return found

    def _milliseconds(self, value: Any, field: str) -> float | None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and 0 <= value <= _MOST_MILLISECONDS:
            return float(value)
        reason = f"must be a number of milliseconds from 0 to {_MOST_MILLISECONDS}"
        self.flaws.append(Flaw(field, reason))
        return None


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_TIMES: Final = 1 << 48
_RUNS: Final = 1 << 62
_HALF: Final = 37
_MASK: Final = (1 << _HALF) - 1
_ROUNDS: Final = range(8)


def job_id(run: int, scheduled_for: datetime, key: bytes) -> UUID:
    """Return the job id of a run for clients of Open Job Spec: a UUID that cannot be guessed.

    Raises:
        ValueError: the id is no id of a row, or the occurrence lies before 1970.
    """
    time = (scheduled_for - _EPOCH) // _MILLISECOND
    if not 0 < run < _RUNS:
        raise ValueError(f"{run} is not the id of a run")
    if not 0 <= time < _TIMES:
        raise ValueError(f"{scheduled_for} has no place in a UUID")
    left, right = run >> _HALF, run & _MASK
    for place in _ROUNDS:
        left, right = right, left ^ _mixed(place, time, right, key)
    hidden = left << _HALF | right
    return UUID(int=time << 80 | 7 << 76 | hidden >> 62 << 64 | 0b10 << 62 | hidden & (_RUNS - 1))


def run_of(name: UUID | str, key: bytes) -> int | None:
    """Return the primary key for a job id, or ``None``.

    A job id that was made with another key may return the primary key of another row, so the caller
    has to compute the job id of that row and compare.
    """
    try:
        value = (name if isinstance(name, UUID) else UUID(name)).int
    except ValueError:
        return None
    time, hidden = value >> 80, (value >> 64 & 0xFFF) << 62 | value & (_RUNS - 1)
    left, right = hidden >> _HALF, hidden & _MASK
    for place in reversed(_ROUNDS):
        left, right = right ^ _mixed(place, time, left, key), left
    run = left << _HALF | right
    is_version_7 = value >> 76 & 0xF == 7 and value >> 62 & 0b11 == 0b10
    return run if is_version_7 and 0 < run < _RUNS else None


def _mixed(place: int, time: int, half: int, key: bytes) -> int:
    text = bytes([place]) + time.to_bytes(6, "big") + half.to_bytes(5, "big")
    return int.from_bytes(blake2b(text, digest_size=8, key=key).digest(), "big") & _MASK


PREFIX: Final = "ddc"

_TOKEN: Final = re.compile(PREFIX + r"_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NO_DIGEST: Final = "0" * 64


class Right(StrEnum):
    """The rights of a caller."""

    READ = "read"
    REGISTER = "register"
    WORK = "work"


PERMISSIONS: Final[Mapping[Right, str]] = {
    Right.READ: "django_declarative_cron.view_scheduledtask",
    Right.REGISTER: "django_declarative_cron.register_scheduledtask",
    Right.WORK: "django_declarative_cron.work_taskrun",
}
"""The permission that grants each right to a user."""


class Token(NamedTuple):
    """An access token.

    Args:
        key: the public part, which identifies the row.
        secret: the part that is not stored.
    """

    key: str
    secret: str

    def __str__(self) -> str:
        return f"{PREFIX}_{self.key}_{self.secret}"

    @property
    def digest(self) -> str:
        """Return the hash of the secret, which is stored.

        A slow hash is not necessary, because the secret has 256 random bits.
        """
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def fits(self, digest: str | None) -> bool:
        """Return whether the secret has the digest, in constant time."""
        return hmac.compare_digest(self.digest, digest or _NO_DIGEST) and digest is not None


def read_token(text: str) -> Token | None:
    """Return the access token in a text, or ``None``."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else Token(found[1], found[2])
