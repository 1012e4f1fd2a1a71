"""What is worth saying about an expression that is accepted."""

from __future__ import annotations

from .expression import CronExpression


def fires_only_in_some_years(expression: CronExpression) -> bool:
    """Tell whether the only date an expression names is 29 February."""
    return (
        expression.months == {2} and min(expression.days) == 29 and not expression.restricted_both
    )
