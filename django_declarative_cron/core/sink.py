"""Where events are posted to: the option ``EVENT_SINK``, and when to try again; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import urlsplit

from .envelope import TYPES
from .nearest import listed, nearest
from .plain import name_of_key
from .receivers import duration, headers, read_keys, secrets, url, whole

LONGEST_BACKOFF: Final = timedelta(hours=1)
"""The longest time between two attempts to deliver one event."""

LONGEST_PAUSE: Final = timedelta(minutes=1)
"""The longest time for which a receiver that does not answer is left alone."""


@dataclass(frozen=True, slots=True)
class Sink:
    """A receiver of events.

    Args:
        url: events are posted to it.
        secrets: each signs.
        events: types that are posted; ``job.*`` means all that begin so.
        timeout: how long the receiver may take to answer.
        give_up_after: how long an event is tried, from its first refusal, before it is set aside.
        most: how many events wait at most; beyond, the oldest are forgotten.
        source: URI of the deployment in the events; made of its identifier where empty.
        headers: sent with each event.
    """

    url: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    events: tuple[str, ...] = ("*",)
    timeout: timedelta = timedelta(seconds=10)
    give_up_after: timedelta = timedelta(days=3)
    most: int = 100_000
    source: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def wants(self, kind: str) -> bool:
        """Tell whether events of a type are posted.

        Args:
            kind: such as ``cron.triggered``.
        """
        return any(fnmatchcase(kind, pattern) for pattern in self.events)


def backoff(attempts: int, chance: float, longest: timedelta) -> timedelta:
    """Give how long to wait after so many attempts, from two seconds on.

    Args:
        attempts: that have failed, from 1.
        chance: a random number, at least 0 and less than 1; what fails together is not
            to be tried together.
        longest: it is no longer than that.
    """
    seconds = min(2.0 ** min(attempts, 30), longest.total_seconds())
    return timedelta(seconds=seconds * (0.5 + chance / 2))


def read_sink(given: object) -> Sink:
    """Understand the option ``EVENT_SINK``.

    Args:
        given: a dictionary with ``url`` and more.

    Raises:
        ValueError: it is refused; the message never has a secret.
    """
    values = read_keys(given, _READERS, _FIELDS, "a dict or None")
    if "url" not in values:
        raise ValueError("must have a `url`")
    return Sink(**values)


def remarks(sink: Sink) -> Iterator[str]:
    """Say what is unsafe in how events are posted.

    Args:
        sink: where they are posted to.
    """
    where = urlsplit(sink.url)
    if not sink.secrets:
        yield "posts events without a signature, so a receiver cannot tell who posts them"
    if where.scheme == "http" and not _is_local(where.hostname or ""):
        yield "posts events over http, so that everybody on the way can read them"


def _is_local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.") or "." not in host


def _patterns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("must be a list of types of events")
    for pattern in value:
        if not isinstance(pattern, str) or not any(fnmatchcase(k, pattern) for k in TYPES):
            near = nearest(pattern, TYPES) if isinstance(pattern, str) else None
            tail = f"; did you mean `{near}`?" if near else f"; there are {listed(TYPES)}"
            raise ValueError(f"names no event by {name_of_key(pattern)[:40]!r}{tail}")
    return tuple(value)


def _source(value: Any) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise ValueError("must be a URI")
    if not value or " " in value:
        raise ValueError("must be a URI")
    return value


_FIELDS: Final = {"secret": "secrets"}
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "url": url,
    "secret": secrets,
    "events": _patterns,
    "timeout": duration(timedelta(milliseconds=100), timedelta(minutes=1)),
    "give_up_after": duration(timedelta(minutes=1), timedelta(days=365)),
    "most": whole,
    "source": _source,
    "headers": headers,
}
