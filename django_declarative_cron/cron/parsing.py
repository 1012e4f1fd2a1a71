"""The errors that users see: the reason from the grammar, and the replacement."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from ..exceptions import LONGEST_ECHO, FieldParseError, InvalidCronExpressionError
from . import ojs, posix
from .expression import CronExpression
from .suggestions import posix_equivalent

_ZONE = re.compile(r"(?:CRON_TZ|TZ)=\S*|(?:US|[A-Z][a-z]+)/[A-Z][A-Za-z0-9_/+-]+|UTC")
_ZONE_HINT = 'give the time zone by the key "timezone", not in the expression'


def refusal(
    expression: Any, error: FieldParseError, dialect: str = "posix"
) -> InvalidCronExpressionError:
    """Turn the error of a field into the error of the whole expression.

    The message shows the beginning of a long expression; ``details`` has all of it.
    The reason code is in the attribute ``code``, its character, from 0, in ``position``, and
    the replacement in ``fix``; the posix grammar sets only the first.
    """
    reason = error.message
    hint = _hint(expression, error.code, dialect)
    if hint is not None:
        reason = f"{reason}; {hint}"
    refused = InvalidCronExpressionError(_readable(expression), error.fieldName, reason)
    refused.details = {**refused.details, "expression": expression}
    known = vars(error)
    vars(refused).update(code=error.code, position=known.get("position"), fix=known.get("fix"))
    return refused


def _hint(expression: Any, code: str, dialect: str) -> str | None:
    if not isinstance(expression, str) or len(expression) > LONGEST_ECHO:
        return None
    parts = expression.split()
    if parts and (_ZONE.fullmatch(parts[0]) or _ZONE.fullmatch(parts[-1])):
        return _ZONE_HINT
    if code == "EMPTY":
        return 'write for example "0 7 * * *"'
    if dialect != "posix":
        return None
    if code == "COUNT" and len(parts) == 6:
        return "there is no field for seconds"
    equivalent = posix_equivalent(expression)
    return None if equivalent is None else f'write "{equivalent}"'


def _readable(expression: Any) -> str:
    try:
        text = str(expression)
    except Exception:
        # str() runs foreign code here; the error must be reported even if that raises.
        text = f"<{type(expression).__name__}>"
    return text


_GRAMMARS: Final[dict[str, Callable[[str], posix.Parsed]]] = {
    "posix": posix.parse_text,
    "ojs": ojs.parse_text,
}
DIALECTS: Final = tuple(_GRAMMARS)
LONGEST_EXPRESSION: Final = 1_000


def parse(text: str, dialect: str = "posix") -> CronExpression:
    """Return the expression of a text.

    Args:
        text: the expression.
        dialect: ``posix``, or ``ojs`` with steps, names, macros, ``L W #`` and ``@every``.

    Raises:
        InvalidCronExpressionError: the text is invalid, or no text.
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
    return CronExpression(exact, dialect, understood)


_parse_cached = lru_cache(maxsize=65_536)(_parse)
