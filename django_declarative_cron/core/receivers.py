"""Reading dictionaries that name a receiver: of events, of check-ins, of notifications.

Each reader gives the value understood, or raises a ``ValueError`` that can be read after the
name of its key, and never has a secret in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from .limits import MOST_WHOLE
from .nearest import listed, nearest
from .plain import name_of_key, seconds_of
from .webhook import key_of

Readers = Mapping[str, Callable[[Any], Any]]


def read_keys(
    given: object, readers: Readers, fields: Mapping[str, str], kind: str = "a dict"
) -> dict[str, Any]:
    """Read every key of a dictionary by its reader.

    Args:
        given: what was written.
        readers: of the known keys.
        fields: names of the values whose keys have others.
        kind: what may be written, for people.

    Raises:
        ValueError: it is no dictionary, a key is unknown, or its value is refused.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"must be {kind}, not {type(given).__name__}")
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in readers:
            name = name_of_key(key)
            near = nearest(name, readers)
            tail = f"; did you mean `{near}`?" if near else f"; known keys: {listed(readers)}"
            raise ValueError(f"has an unknown key `{name[:40]}`{tail}")
        try:
            values[fields.get(str(key), str(key))] = readers[key](value)
        except ValueError as error:
            raise ValueError(f"has a `{key}` that {error}") from None
    return values


def url(value: Any) -> str:
    """Read a URL that may be posted to.

    Args:
        value: what was given.
    """
    if not isinstance(value, str):
        raise ValueError(f"must be a text, not {type(value).__name__}")
    try:
        parts = urlsplit(value)
        is_fine = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_fine = is_fine and (parts.port is None or parts.port > 0)
    except ValueError:
        is_fine = False
    if not is_fine or not value.isprintable() or " " in value:
        raise ValueError("must be a URL such as https://hooks.example.org/cron")
    if parts.username or parts.password:
        raise ValueError("must not have a user or a password; write `headers` instead")
    return value


def secrets(value: Any) -> tuple[str, ...]:
    """Read one secret or several, the newest first.

    Args:
        value: what was given.
    """
    found = (value,) if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not found:
        raise ValueError("must be a text, or a list of texts with the newest first")
    for secret in found:
        if not isinstance(secret, str):
            raise ValueError(f"must be a text, not {type(secret).__name__}")
        key_of(secret)
    return tuple(found)


def duration(least: timedelta, longest: timedelta) -> Callable[[Any], timedelta]:
    """Make a reader of durations.

    Args:
        least: the shortest that is taken.
        longest: the longest.
    """

    def read(value: Any) -> timedelta:
        is_duration = isinstance(value, timedelta)
        seconds = value.total_seconds() if is_duration else seconds_of(value)
        if seconds is None:
            raise ValueError("must be a timedelta or a number of seconds")
        if not least.total_seconds() <= seconds <= longest.total_seconds():
            bounds = f"{least.total_seconds():g} s to {longest.total_seconds():g} s"
            raise ValueError(f"must be from {bounds}, not {seconds:g} s")
        return timedelta(seconds=seconds)

    return read


def whole(value: Any) -> int:
    """Read a whole number from 1 to the largest that a database counts to.

    Args:
        value: what was given.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_WHOLE:
        raise ValueError(f"must be a whole number from 1 to {MOST_WHOLE}")
    return value


def headers(value: Any) -> dict[str, str]:
    """Read headers that are sent with each request.

    Args:
        value: what was given.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a dict, not {type(value).__name__}")
    for name, text in value.items():
        texts = isinstance(name, str) and isinstance(text, str)
        if not texts or not name or not all(w.isascii() and w.isprintable() for w in (name, text)):
            raise ValueError("must have names and values of printable ASCII")
        if name.lower() == "content-type" or name.lower().startswith("webhook-"):
            raise ValueError(f"must not set {name[:40]}")
    return dict(value)
