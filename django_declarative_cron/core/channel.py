"""Whom people are told by that something needs them: the option ``NOTIFY``; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, Final

from .nearest import listed, nearest
from .plain import flaw_of_text
from .receivers import duration, headers, read_keys, secrets, url

OCCASIONS: Final = ("failure", "recovery", "overdue", "missed", "no_leader")
"""What people can be told of."""

KINDS: Final = ("mail", "slack", "webhook")

_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Channel:
    """A way to people.

    Args:
        kind: ``mail``, ``slack`` or ``webhook``.
        name: by which it is shown and tested.
        to: addresses of mail.
        url: that is posted to.
        secrets: each signs what a webhook is posted.
        headers: sent with it.
        on: of what it tells.
        tasks: patterns of the names of which it tells.
        again_after: how long it is silent of the same, which it counts meanwhile.
        pause: how long it is silent after each message, in which it gathers what comes.
        timeout: how long an address may take to answer.
    """

    kind: str
    name: str = ""
    to: tuple[str, ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    on: tuple[str, ...] = OCCASIONS
    tasks: tuple[str, ...] = ("*",)
    again_after: timedelta = timedelta(hours=1)
    pause: timedelta = timedelta(minutes=1)
    timeout: timedelta = timedelta(seconds=10)

    def wants(self, occasion: str, task: str) -> bool:
        """Tell whether it tells of something.

        Args:
            occasion: one of ``OCCASIONS``.
            task: its name, empty where it is about none.
        """
        if occasion not in self.on:
            return False
        return not task or any(fnmatchcase(task, pattern) for pattern in self.tasks)


def read_channels(given: object) -> tuple[Channel, ...]:
    """Understand the option ``NOTIFY``.

    Args:
        given: a list of dictionaries.

    Raises:
        ValueError: it is refused; the message has no address and no secret.
    """
    if not isinstance(given, list | tuple):
        raise ValueError(f"must be a list of dicts, not {type(given).__name__}")
    if len(given) > _MOST:
        raise ValueError(f"must have at most {_MOST} channels")
    found: list[Channel] = []
    for position, each in enumerate(given):
        try:
            channel = _read(each)
        except ValueError as error:
            raise ValueError(f"has an item {position} that {error}") from None
        found.append(_named(channel, [other.name for other in found], position))
    return tuple(found)


def remarks(channels: tuple[Channel, ...]) -> Iterator[str]:
    """Say what is unsafe in how people are told.

    Args:
        channels: of the project.
    """
    for channel in channels:
        if channel.kind == "webhook" and not channel.secrets:
            yield f"has the webhook {channel.name!r} without a `secret`, so anybody may pose as us"


def _read(given: object) -> Channel:
    values = read_keys(given, _READERS, {"secret": "secrets"})
    kind = values.get("kind")
    if kind is None:
        raise ValueError(f"must have a `kind`: {listed(KINDS, ' or ')}")
    needed = "to" if kind == "mail" else "url"
    if needed not in values:
        raise ValueError(f"must have `{needed}`, for its kind is {kind}")
    for key in values:
        if key in _OF_KIND and kind not in _OF_KIND[key]:
            name = "secret" if key == "secrets" else key
            raise ValueError(f"has a `{name}`, which does not go with the kind {kind}")
    return Channel(**values)


def _named(channel: Channel, others: list[str], position: int) -> Channel:
    if channel.name:
        if channel.name in others:
            raise ValueError(f"has the name {channel.name[:40]!r} twice")
        return channel
    name = channel.kind
    return replace(channel, name=f"{name}-{position + 1}" if name in others else name)


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            near = nearest(value, choices) if isinstance(value, str) else None
            tail = f"; did you mean `{near}`?" if near else ""
            raise ValueError(f"must be {listed(choices, ' or ')}{tail}")
        return value

    return read


def _list_of(read: Callable[[Any], str], words: str) -> Callable[[Any], tuple[str, ...]]:
    def read_all(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise ValueError(f"must be a list of {words}")
        return tuple(map(read, value))

    return read_all


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 255:
        raise ValueError("must be a text of 1 to 255 characters")
    flaw = flaw_of_text(value, one_line=True)
    if flaw is not None:
        raise ValueError(flaw)
    return value


def _address(value: Any) -> str:
    if "@" not in _text(value):
        raise ValueError("must have addresses of mail")
    return str(value)


_OF_KIND: Final = {"to": ("mail",), "url": ("slack", "webhook"), "secrets": ("webhook",)} | {
    "headers": ("webhook",),
    "timeout": ("slack", "webhook"),
}
_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "kind": _one_of(KINDS),
    "name": _text,
    "to": _list_of(_address, "addresses"),
    "url": url,
    "secret": secrets,
    "headers": headers,
    "on": _list_of(_one_of(OCCASIONS), "occasions"),
    "tasks": _list_of(_text, "patterns of names"),
    "again_after": duration(timedelta(minutes=1), timedelta(days=30)),
    "pause": duration(timedelta(seconds=1), timedelta(days=1)),
    "timeout": duration(timedelta(milliseconds=100), timedelta(minutes=1)),
}
