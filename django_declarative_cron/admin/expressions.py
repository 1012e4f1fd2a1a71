"""The expression helper: type an expression and a zone, read what it means."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from ..core.schedule import Schedule
from ..cron import (
    DIALECTS,
    UnknownZoneError,
    fires_only_in_some_years,
    parse,
    remarks_on,
    validate_zone,
)
from ..exceptions import InvalidCronExpressionError
from . import formats, story

_LONGEST = 255


class ExpressionForm(forms.Form):
    """Ask for an expression, its zone and its dialect."""

    expression = forms.CharField(
        label=_("Cron expression"),
        max_length=_LONGEST,
        strip=False,
        widget=forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
    )
    timezone = forms.CharField(
        label=_("Time zone"),
        max_length=_LONGEST,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )
    dialect = forms.ChoiceField(label=_("Dialect"), choices=[(each, each) for each in DIALECTS])


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an expression means, or what is wrong with it.

    Args:
        problem: why it is refused, or empty.
        words: in plain words.
        upcoming: its next occurrences.
        remarks: what is surprising about it.
    """

    problem: str = ""
    words: str = ""
    upcoming: list[story.Upcoming] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def meaning_of(given: dict[str, Any], now: datetime) -> Meaning:
    """Return what was typed means."""
    try:
        expression = parse(given["expression"], given["dialect"])
        zone = validate_zone(given["timezone"])
    except InvalidCronExpressionError as error:
        return Meaning(problem=error.message)
    except UnknownZoneError as error:
        return Meaning(problem=str(error))
    schedule = Schedule(expression, zone, anchor=now)
    remarks = [f"{remark[:1].upper()}{remark[1:]}." for remark in remarks_on(expression)]
    if expression.restricted_both:
        remarks.append(str(_("Both day fields are restricted: a day that either names is enough.")))
    if fires_only_in_some_years(expression):
        remarks.append(str(_("There are years in which it names no day.")))
    return Meaning(
        words=formats.words(expression),
        upcoming=list(islice(story.upcoming(schedule, now), story.UPCOMING)),
        remarks=remarks,
    )
