"""A CronJob object as it comes over HTTP, brought into the form of a dict entry; pure.

Clients of Open Job Spec differ: the expression is called ``cron`` or ``expression``, and
what runs stands beside it or in ``job_template``. Here each becomes the form that
``SCHEDULED_TASKS`` has, so that one reader judges both. What a caller from outside may not
say, such as an import path, is refused by name before that.
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
"""Keys that only the scheduler sets (CRON-06), as the known clients spell them."""

FORBIDDEN: Final = ("callback", "command", "dialect", "retry_delay", "runner", "atomic", "monitor")
"""Keys of a dict entry that decide on code and addresses, and are for those who have it."""

_INTO_OPTIONS: Final = ("queue", "timeout", "timeout_ms", "retry", "tags", "meta")
_TEMPLATE: Final = "job_template"
_MOST_MILLISECONDS: Final = 10**12


class Flaw(NamedTuple):
    """Say what is wrong before the reader of entries sees an object.

    Args:
        field: the key that is wrong.
        reason: what is wrong, readable after the name of the key.
    """

    field: str
    reason: str


def entry_of(posted: Mapping[str, Any]) -> tuple[dict[str, Any], list[Flaw]]:
    """Return the dict entry that a posted object stands for (002 Complete CronJob Object).

    Returns:
        the entry, without what is wrong; and what it says twice, or what nobody may say
        from outside.
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
    """Bring one object into the form of an entry, and note what does not go into it."""

    def __init__(self, posted: Mapping[str, Any]) -> None:
        self.entry = {key: value for key, value in posted.items() if key not in IGNORED}
        self.flaws: list[Flaw] = []

    def template(self) -> None:
        """Take out what a client nests, as if it stood beside the rest."""
        template = self.entry.pop(_TEMPLATE, None)
        if not isinstance(template, dict | None):
            self.flaws.append(Flaw(_TEMPLATE, "must be an object"))
            return
        for key, value in (template or {}).items():
            if key not in ("type", "args", "options", *_INTO_OPTIONS, *IGNORED):
                self.flaws.append(Flaw(f"{_TEMPLATE}.{key}", "is no known key"))
            elif key not in IGNORED:
                self.put(self.entry, key, value, f"{_TEMPLATE}.{key}")

    def put(self, into: dict[str, Any], key: str, value: Any, said_as: str) -> None:
        """Write down what may stand in two places, where both say the same."""
        if into.get(key) is not None and into[key] != value:
            self.flaws.append(Flaw(said_as, f"contradicts `{key}`: one of them says it"))
        else:
            into[key] = value

    def forbid(self) -> None:
        """Take out what is not for callers from outside."""
        for key in FORBIDDEN:
            if key in self.entry:
                del self.entry[key]
                reason = "cannot be said over HTTP: it is for SCHEDULED_TASKS"
                self.flaws.append(Flaw(key, reason))

    def options(self) -> None:
        """Bring what clients write beside ``options`` into it, with durations as 002 has them."""
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
    """Return the name of a run for clients of Open Job Spec.

    Raises:
        ValueError: the id is no id of a row, or the occurrence lies before 1970.
    """
    time = (scheduled_for - _EPOCH) // _MILLISECOND
    if not 0 < run < _RUNS:
        raise ValueError(f"{run} is no id of a run")
    if not 0 <= time < _TIMES:
        raise ValueError(f"{scheduled_for} has no place in a UUID")
    left, right = run >> _HALF, run & _MASK
    for place in _ROUNDS:
        left, right = right, left ^ _mixed(place, time, right, key)
    hidden = left << _HALF | right
    return UUID(int=time << 80 | 7 << 76 | hidden >> 62 << 64 | 0b10 << 62 | hidden & (_RUNS - 1))


def run_of(name: UUID | str, key: bytes) -> int | None:
    """Return the id of the row that a name may stand for, ``None`` if it stands for none.

    A name that was made with another key may give the id of another row: make the name of
    that row and compare.
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
_NOBODYS: Final = "0" * 64


class Right(StrEnum):
    """What may be granted to a caller."""

    READ = "read"
    REGISTER = "register"
    WORK = "work"


PERMISSIONS: Final[Mapping[Right, str]] = {
    Right.READ: "django_declarative_cron.view_scheduledtask",
    Right.REGISTER: "django_declarative_cron.register_scheduledtask",
    Right.WORK: "django_declarative_cron.work_taskrun",
}
"""The permission that gives a user each right."""


class Token(NamedTuple):
    """An access token, taken apart.

    Args:
        key: the public part, by which its row is found.
        secret: the part that nobody stores.
    """

    key: str
    secret: str

    def __str__(self) -> str:
        return f"{PREFIX}_{self.key}_{self.secret}"

    @property
    def digest(self) -> str:
        """Return what is stored in place of the secret.

        The secret is 256 random bits, so a slow hash would protect nothing more.
        """
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def fits(self, digest: str | None) -> bool:
        """Return whether the secret is the one of a digest, in a time that tells nothing."""
        return hmac.compare_digest(self.digest, digest or _NOBODYS) and digest is not None


def read_token(text: str) -> Token | None:
    """Take an access token apart, ``None`` where a text is none."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else Token(found[1], found[2])
