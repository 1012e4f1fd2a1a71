"""The parts that both forms of an item have: name, cron expression, delay, callable."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ...cron import CronExpression, parse
from ...cron.posix import EXPRESSION
from ...cron.suggestions import posix_equivalent
from ...exceptions import (
    LONGEST_ECHO,
    CronExpressionInvalidError,
    DeclarativeCronError,
    FieldParseError,
    InvalidCronExpressionError,
    NegativeRetryDelayError,
    ScheduleDuplicateTaskError,
    echoed,
)
from ..readers import CENTURY
from .declaration import MILLISECOND, Target
from .item import Item
from .problems import Check, UnresolvableError
from .values import LONGEST_NAME, LONGEST_PATH, flaw_of_text, in_short, plain_text, too_long

_ZERO = timedelta(0)
_CRON_HINT = 'Write five fields, minute hour day month weekday, such as "0 7 * * 1-5".'
_OJS_HINT = (
    "Write five fields, minute hour day month weekday, or six with seconds first,"
    ' such as "*/15 9-17 * * MON-FRI".'
)
_OJS_BY_DICT = "write the task as a dict, whose dialect `ojs` accepts it"
_OJS_BY_KEY = 'set "dialect": "ojs", which accepts it'
_NAME_HINT = f"Write a text of 1 to {LONGEST_NAME} characters on one line."
_NEVER_HINT = "Name a day that at least one of the months has."


def refuse_name(item: Item, name: str, flaw: str, hint: str = _NAME_HINT) -> None:
    """Report a name, with its flaw and a fix."""
    item.refuse_field(Check.NAME, "name", name, flaw, hint)


def flaw_of_name(name: str) -> str | None:
    """Return the flaw of a name, or ``None``; names are compared letter for letter."""
    if 0 < len(name) <= LONGEST_NAME and name.isprintable():
        return None
    if not name:
        return "must not be empty"
    return too_long(name, LONGEST_NAME) or flaw_of_text(name, one_line=True)


def refuse_duplicate(item: Item) -> None:
    """Report a name that an earlier item has (001 ScheduleDuplicateTaskError)."""
    names = item.reader.names
    if item.name is None:
        return
    if item.name in names:
        error = ScheduleDuplicateTaskError(item.name)
        item.refuse(Check.DUPLICATE, error, "Give each task a name of its own.")
    names.add(item.name)


def read_cron(item: Item, text: str, dialect: str = "posix") -> CronExpression | None:
    """Parse an expression (001 CronExpressionInvalidError)."""
    try:
        return parse(plain_text(text), dialect)
    except InvalidCronExpressionError as error:
        check = _CRON_CHECKS.get(error.code, Check.CRON)
        hint = _swapped(item, text, dialect) or _cron_hint(item, text, error, dialect)
        item.refuse(check, _for_registration(error), hint)
        return None


def _swapped(item: Item, text: str, dialect: str) -> str:
    """Return a hint where name and expression are swapped, or an empty text."""
    given = item.given
    name: Any = given.get("name") if isinstance(given, dict) else given[0]
    try:
        parse(name, dialect)
    except InvalidCronExpressionError:
        return ""
    return f'Swap them: the name is "{echoed(text)}", the expression "{echoed(name)}".'


_CRON_CHECKS = {"NEVER": Check.NEVER_FIRES, "LENGTH": Check.TOO_LONG}


def _for_registration(error: InvalidCronExpressionError) -> CronExpressionInvalidError:
    # The original message is kept, because it shortens an overlong expression.
    refused = CronExpressionInvalidError.__new__(CronExpressionInvalidError)
    DeclarativeCronError.__init__(refused, error.message, **error.details)
    vars(refused).update({key: vars(error).get(key) for key in ("code", "position", "fix")})
    refused.__cause__ = error
    return refused


def _cron_hint(item: Item, text: str, error: InvalidCronExpressionError, dialect: str) -> str:
    if error.code == "NEVER":
        return _NEVER_HINT
    zone, rest = _zone_inside(text)
    if zone:
        return f'Write a dict with "cron": "{rest}", "timezone": "{zone}".'
    hint = ""
    if len(text) <= LONGEST_ECHO:
        hint = _fixed(text, error) if dialect == "ojs" else _accepted(item, text, error)
    return hint or _hint_for_field(error, dialect)


def _accepted(item: Item, text: str, error: InvalidCronExpressionError) -> str:
    """Return the posix form, and the way to a dialect that accepts the expression as it is."""
    equivalent = posix_equivalent(text)
    hints = [f'Write "{equivalent}"'] if equivalent else []
    # Of six fields the sixth may be meant as a year, which no dialect has.
    if error.code != "COUNT" and _is_ojs(text):
        is_dict = isinstance(item.given, dict)
        hints.append(_OJS_BY_KEY if is_dict else _OJS_BY_DICT)
    hint = ", or ".join(hints)
    return f"{hint[:1].upper()}{hint[1:]}." if hint else ""


def _is_ojs(text: str) -> bool:
    try:
        parse(text, "ojs")
    except InvalidCronExpressionError:
        return False
    return True


def _hint_for_field(error: InvalidCronExpressionError, dialect: str) -> str:
    """Return the values of the refused field, or a whole expression where none is refused."""
    field = vars(error.__cause__).get("range")
    if field is not None:
        article = "an" if field.name == "hour" else "a"
        return f"Write {article} {field.name} from {field.low} to {field.high}."
    if error.field == EXPRESSION:
        return _OJS_HINT if dialect == "ojs" else _CRON_HINT
    forms = "*, numbers, ranges or steps" if dialect == "ojs" else "* or numbers and ranges"
    example = '"1,3-5" or "*/2"' if dialect == "ojs" else '"1,3-5"'
    return f"Write {forms} in the {error.field} field, such as {example}."


def _fixed(text: str, error: InvalidCronExpressionError) -> str:
    """Return the expression with the proposed fix in place of the refused part."""
    said, refused = vars(error), error.__cause__
    fix, position = said.get("fix"), said.get("position")
    if not fix or position is None or not isinstance(refused, FieldParseError):
        return ""
    return f'Write "{text[:position]}{fix}{text[position + len(refused.fieldValue) :]}".'


def _zone_inside(text: str) -> tuple[str, str]:
    first, *others = text[:LONGEST_ECHO].split() or [""]
    if first.startswith(("CRON_TZ=", "TZ=")) and len(others) == 5:
        return first.partition("=")[2], " ".join(others)
    if len(others) == 5 and others[-1].replace("/", "").replace("_", "").isalpha():
        return others[-1], " ".join([first, *others[:-1]])
    return "", text


def judge_delay(item: Item, delay: timedelta, field: str) -> None:
    """Report a retry delay out of bounds (001 NegativeRetryDelayError)."""
    if delay < _ZERO:
        hint = "Write timedelta(0) to retry after one second."
        item.refuse(Check.RETRY_DELAY, NegativeRetryDelayError(_milliseconds(delay)), hint)
    elif _ZERO < delay < MILLISECOND:
        reason = f"must be zero or at least one millisecond, found {delay / MILLISECOND} ms"
        hint = "Write timedelta(0) to retry after one second."
        item.refuse_field(Check.RETRY_DELAY, field, delay, reason, hint)
    elif delay > CENTURY:
        reason = f"must be at most {CENTURY.days} days"
        item.refuse_field(Check.RETRY_DELAY, field, delay, reason, "Write timedelta(days=365).")


def _milliseconds(delay: timedelta) -> float:
    whole, rest = divmod(delay, MILLISECOND)
    return delay / MILLISECOND if rest else whole


def delay_hint(value: Any) -> str:
    """Return how to write a retry delay, given a value of another type."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"timedelta(seconds={in_short(value)})" if number else "timedelta(minutes=5)"


def resolve_callback(item: Item, given: str | Callable[..., Any], field: str) -> Target | None:
    """Return the target of a callback or a type; report why there is none."""
    resolver = item.reader.resolver
    try:
        if not isinstance(given, str):
            return resolver.callback(given)
        text = plain_text(given)
        if (flaw := too_long(text, LONGEST_PATH)) is not None:
            item.refuse_field(Check.TOO_LONG, field, text, flaw)
            return None
        return resolver.type(text) if field == "type" else resolver.callback(text)
    except UnresolvableError as error:
        item.refuse_field(error.check, field, given, error.reason, error.hint)
        return None


def resolve_command(item: Item, words: tuple[str, ...]) -> Target | None:
    """Return the target of a management command; report why there is none."""
    try:
        return item.reader.resolver.command(words)
    except UnresolvableError as error:
        item.refuse_field(error.check, "command", words, error.reason, error.hint)
        return None
