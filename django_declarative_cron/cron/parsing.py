"""The one function that makes an expression of a text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from ..exceptions import FieldParseError
from . import ojs, posix
from .expression import CronExpression
from .interval import Every, IntervalExpression
from .refusal import refusal

_GRAMMARS: Final[dict[str, Callable[[str], posix.Parsed | Every]]] = {
    "posix": posix.parse_text,
    "ojs": ojs.parse_text,
}
DIALECTS: Final = tuple(_GRAMMARS)
LONGEST_EXPRESSION: Final = 1_000


def parse(text: str, dialect: str = "posix") -> CronExpression:
    """Understand a cron expression.

    Args:
        text: the expression.
        dialect: ``posix``, or ``ojs`` with steps, names, macros, ``L W #`` and ``@every``.

    Raises:
        InvalidCronExpressionError: whatever is wrong with ``text``, its type included.
        ValueError: the dialect is unknown.

    Source: 001 Cron Language Specification; 002 Cron Expression Syntax.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"unknown cron dialect {dialect!r}, known: {', '.join(DIALECTS)}")
    if type(text) is str and len(text) <= posix.LONGEST_KEPT:
        return _parse_cached(text, dialect)
    return _parse(text, dialect)


def _parse(text: Any, dialect: str) -> CronExpression:
    try:
        if not isinstance(text, str):
            reason = f"must be a string, not {type(text).__name__}"
            raise posix.refuse("TYPE", posix.EXPRESSION, "", reason)
        exact = str.__str__(text)
        if len(exact) > LONGEST_EXPRESSION:
            reason = f"must have at most {LONGEST_EXPRESSION} characters, found {len(exact)}"
            raise posix.refuse("LENGTH", posix.EXPRESSION, "", reason)
        understood = _GRAMMARS[dialect](exact)
    except FieldParseError as error:
        raise refusal(text, error, dialect) from error
    if isinstance(understood, Every):
        return IntervalExpression(exact, dialect, understood)
    return CronExpression(exact, dialect, understood)


_parse_cached = lru_cache(maxsize=65_536)(_parse)
