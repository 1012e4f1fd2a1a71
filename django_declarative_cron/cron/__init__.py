"""Cron expressions: from text to instants. Pure: no Django, no clock.

``parse`` makes a ``CronExpression``; that one answers when it is due.
"""

from .expression import CronExpression, Fold, Gap, Lost, parse
from .notes import fires_only_in_some_years
from .suggest import posix_equivalent
from .wording import describe
from .zones import Transition, UnknownZoneError, next_transitions, validate_zone

__all__ = [
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
    "validate_zone",
]
