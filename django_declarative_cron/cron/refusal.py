"""The errors people see: the reason a grammar gave, and what to write instead."""

from __future__ import annotations

import re
from typing import Any

from ..exceptions import LONGEST_ECHO, FieldParseError, InvalidCronExpressionError
from .suggest import posix_equivalent

_ZONE = re.compile(r"(?:CRON_TZ|TZ)=\S*|(?:US|[A-Z][a-z]+)/[A-Z][A-Za-z0-9_/+-]+|UTC")
_ZONE_HINT = 'give the time zone by the key "timezone", not in the expression'


def refusal(
    expression: Any, error: FieldParseError, dialect: str = "posix"
) -> InvalidCronExpressionError:
    """Turn the refusal of a field into that of the whole expression.

    The message shows the beginning of a long expression; ``details`` has all of it.
    The reason code is in the attribute ``code``, the character it points at, from 0, in
    ``position``, and what to write there in ``fix``; the posix grammar knows only the first.

    Args:
        expression: what was given, of any type.
        error: what the grammar said about it.
        dialect: whose grammar that was.
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
        # str() runs foreign code here, and whatever that does, the refusal must get out.
        text = f"<{type(expression).__name__}>"
    return text
