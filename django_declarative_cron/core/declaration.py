"""A declaration: what is written in settings for one task, understood."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from .retry import FixedDelay, Retry
from .schedule import Schedule

MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Target:
    """What runs: a callable, with the text it is known by.

    Args:
        text: dotted path, qualified name, or the words of a management command.
        function: what is called; it may be ``async`` and may take ``run``.
        args: positional arguments, JSON-native.
        is_command: ``True`` for a management command.
    """

    text: str
    function: Callable[..., Any] = field(compare=False)
    args: tuple[Any, ...] = ()
    is_command: bool = False


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared task.

    Args:
        name: its identity, letter for letter.
        cron: the expression as it was written; another spacing is another text.
        timezone: IANA name.
        schedule: expression and zone, parsed.
        target: what runs.
        retry_delay: from the end of a failed run.
        enabled: ``False`` works like a pause.
        description: words for people.
        overlap_policy: what happens to an occurrence during the task's own run.
        options: everything else that was declared, JSON-native.
    """

    name: str
    cron: str
    timezone: str
    schedule: Schedule
    target: Target
    retry_delay: timedelta
    enabled: bool = True
    description: str = ""
    overlap_policy: str = "coalesce"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def retry(self) -> Retry:
        """Give the rule that dates the next attempt."""
        return FixedDelay(self.retry_delay)

    @property
    def retry_delay_ms(self) -> int:
        """Give the retry delay in milliseconds, as the log contract spells it."""
        return self.retry_delay // MILLISECOND

    @property
    def identity(self) -> tuple[str, str, timedelta]:
        """Give what an override is judged by (001 Configuration Comparison)."""
        return (self.cron, self.timezone, self.retry_delay)

    def as_data(self) -> dict[str, Any]:
        """Give the declaration as JSON-native data, without the callable."""
        expression = self.schedule.expression
        return {
            "name": self.name,
            "cron": self.cron,
            "timezone": self.timezone,
            "retry_delay_us": self.retry_delay // timedelta(microseconds=1),
            "dialect": expression.dialect,
            "gap": self.schedule.gap,
            "fold": self.schedule.fold,
            "callback": self.target.text,
            "args": list(self.target.args),
            "command": self.target.is_command,
            "enabled": self.enabled,
            "description": self.description,
            "overlap_policy": self.overlap_policy,
            "options": dict(self.options),
        }

    def digest(self) -> str:
        """Give a short text that changes whenever anything declared does."""
        return _digest(json.dumps(self.as_data(), sort_keys=True, ensure_ascii=False))


def digest_of_set(declarations: Iterable[Declaration]) -> str:
    """Give a short text that changes whenever the registration set does.

    Args:
        declarations: the whole set; their order says nothing.
    """
    return _digest("\n".join(sorted(f"{d.name}\0{d.digest()}" for d in declarations)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
