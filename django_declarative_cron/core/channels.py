"""Read the options of channels, and sign requests by Standard Webhooks 1.0."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import urlsplit

from .declarations.values import listed
from .readers import MINUTE, SECOND, TENTH, Reader, duration, list_of, one_of, read_keys, text

PREFIX: Final = "whsec_"
LEAST_KEY: Final = 24
"""The minimum length of a secret in bytes; Standard Webhooks specifies 24 to 64."""

CONTENT_TYPE: Final = "application/cloudevents+json; charset=utf-8"


def validate_secret(secret: str) -> None:
    """Raise if a secret is not in the format of Standard Webhooks; the message omits it.

    Raises:
        ValueError: the prefix, the Base64 text or the length is wrong.
    """
    if not secret.startswith(PREFIX):
        raise ValueError(f"must begin with {PREFIX}")
    try:
        text = secret.removeprefix(PREFIX)
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"must be Base64 after {PREFIX}") from None
    if len(key) < LEAST_KEY:
        raise ValueError(f"must encode at least {LEAST_KEY} bytes, not {len(key)}")


def signature_headers(
    event_id: str, body: bytes, now: datetime, secrets: Iterable[str]
) -> dict[str, str]:
    """Return the headers of one delivery attempt, with a signature by each secret."""
    found = {
        "content-type": CONTENT_TYPE,
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now.timestamp())),
    }
    signatures = [_sign(secret, event_id, body, now) for secret in secrets]
    return found | ({"webhook-signature": " ".join(signatures)} if signatures else {})


def _sign(secret: str, event_id: str, body: bytes, now: datetime) -> str:
    # The library is optional, so it is imported only if something is signed.
    from standardwebhooks import Webhook

    return Webhook(secret).sign(event_id, now.astimezone(UTC), body.decode())


def url(value: Any) -> str:
    """Return a URL that accepts POST requests."""
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
    """Return one or several secrets, the newest first."""
    found = (value,) if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not found:
        raise ValueError("must be a text, or a list of texts with the newest first")
    for secret in found:
        if not isinstance(secret, str):
            raise ValueError(f"must be a text, not {type(secret).__name__}")
        validate_secret(secret)
    return tuple(found)


def headers(value: Any) -> dict[str, str]:
    """Return the headers that are sent with each request."""
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a dict, not {type(value).__name__}")
    for name, said in value.items():
        are_texts = isinstance(name, str) and isinstance(said, str)
        line = f"{name}{said}"
        if not (are_texts and name and line.isascii() and line.isprintable()):
            raise ValueError("must have names and values of printable ASCII")
        if name.lower() == "content-type" or name.lower().startswith("webhook-"):
            raise ValueError(f"must not set {name[:40]}")
    return dict(value)


OCCASIONS: Final = ("failure", "recovery", "overdue", "missed", "no_leader")
"""The occasions of notifications."""

KINDS: Final = ("mail", "slack", "webhook")

_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel for notifications.

    Args:
        kind: ``mail``, ``slack`` or ``webhook``.
        name: identifies it in commands and the admin.
        to: mail addresses.
        url: receives a POST request for each message.
        secrets: each of them signs the requests to a webhook.
        headers: sent to a webhook.
        on: occasions that are sent.
        tasks: patterns of the names of tasks.
        again_after: time during which repeated notices are counted only.
        pause: minimum time between two messages.
        timeout: for one request.
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
        """Return whether the channel sends notices of this occasion and task."""
        if occasion not in self.on:
            return False
        return not task or any(fnmatchcase(task, pattern) for pattern in self.tasks)


def read_channels(given: object) -> tuple[Channel, ...]:
    """Return the option ``NOTIFY``.

    Raises:
        ValueError: it is invalid; the message contains no address and no secret.
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
    """Yield warnings about insecure settings."""
    for channel in channels:
        if channel.kind == "webhook" and not channel.secrets:
            yield f"has the webhook {channel.name!r} without a `secret`, so messages can be forged"


def _read(given: object) -> Channel:
    values = read_keys(given, _READERS)
    kind = values.get("kind")
    if kind is None:
        raise ValueError(f"must have a `kind`: {listed(KINDS, ' or ')}")
    needed = "to" if kind == "mail" else "url"
    if needed not in values:
        raise ValueError(f"must have `{needed}`, for its kind is {kind}")
    for key in values:
        if key in _OF_KIND and kind not in _OF_KIND[key]:
            raise ValueError(f"has a `{key}`, which the kind {kind} does not accept")
    return Channel(secrets=values.pop("secret", ()), **values)


def _named(channel: Channel, others: list[str], position: int) -> Channel:
    if channel.name:
        if channel.name in others:
            raise ValueError(f"has the name {channel.name[:40]!r} twice")
        return channel
    name = channel.kind
    return replace(channel, name=f"{name}-{position + 1}" if name in others else name)


_text = text()


def _address(value: Any) -> str:
    if "@" not in _text(value):
        raise ValueError("must have addresses of mail")
    return str(value)


_OF_KIND: Final = {
    "to": ("mail",),
    "url": ("slack", "webhook"),
    "secret": ("webhook",),
    "headers": ("webhook",),
    "timeout": ("slack", "webhook"),
}
_READERS: Final[Mapping[str, Reader]] = {
    "kind": one_of(KINDS),
    "name": _text,
    "to": list_of(_address, "addresses"),
    "url": url,
    "secret": secrets,
    "headers": headers,
    "on": list_of(one_of(OCCASIONS), "occasions"),
    "tasks": list_of(_text, "patterns of names"),
    "again_after": duration(MINUTE, timedelta(days=30)),
    "pause": duration(SECOND, timedelta(days=1)),
    "timeout": duration(TENTH, MINUTE),
}
