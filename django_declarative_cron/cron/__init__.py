"""Cron expressions: from text to instants. Pure: no Django, no clock.

``parse`` returns a ``CronExpression``, which computes its occurrences.
"""

from .expression import CronExpression, Fold, Gap, Lost
from .parsing import DIALECTS, LONGEST_EXPRESSION, parse
from .suggestions import posix_equivalent
from .wording import describe, fires_only_in_some_years, remarks_on
from .zones import Transition, UnknownZoneError, next_transitions, validate_zone

__all__ = [
    "DIALECTS",
    "LONGEST_EXPRESSION",
    "CronExpression",
    "Fold",
    "Gap",
    "Lost",
    "Transition",
    "UnknownZoneError",
    "describe",
    "fires_only_in_some_years",
    "next_transitions",
    "parse",
    "posix_equivalent",
    "remarks_on",
    "validate_zone",
]
