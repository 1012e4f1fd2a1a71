"""The keys of a dict entry: what each may hold, and what this version does not do yet."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, NamedTuple

from .nearest import listed, nearest
from .parts import delay_hint
from .plain import flaw_of_data, flaw_of_text


class Key(NamedTuple):
    """Say what a key holds.

    Args:
        types: of an acceptable value.
        article: what to call them.
    """

    types: tuple[type, ...]
    article: str

    def fits(self, value: Any) -> bool:
        """Tell whether a value has one of the types; ``True`` is no number."""
        return isinstance(value, self.types)


_TEXT: Final = Key((str,), "a text")
_FLAG: Final = Key((bool,), "True or False")

KEYS: Final = {
    "name": _TEXT,
    "cron": _TEXT,
    "timezone": _TEXT,
    "callback": Key((str, Callable), "a dotted path or a callable"),  # type: ignore[arg-type]
    "type": Key((str,), "a dotted path"),
    "command": Key((str, list, tuple), "a list of words"),
    "args": Key((list, tuple), "a list"),
    "enabled": _FLAG,
    "description": Key((str, type(None)), "a text"),
    "overlap_policy": _TEXT,
    "retry_delay": Key((timedelta,), "a timedelta"),
    "dialect": _TEXT,
    "gap": _TEXT,
    "fold": _TEXT,
    "options": Key((dict,), "a dict"),
    "runner": _TEXT,
    "atomic": _FLAG,
}
