"""What a person may say with an act."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from ..runtime.clock import system_clock


class FutureField(forms.DateTimeField):
    """Ask for an instant to come, in the zone of whoever is asked.

    Args:
        past: what is said of one that is over.
    """

    def __init__(self, *, past: Any, **kwargs: Any) -> None:
        self.past = past
        widget = forms.DateTimeInput(format="%Y-%m-%dT%H:%M", attrs={"type": "datetime-local"})
        super().__init__(required=False, widget=widget, **kwargs)

    def clean(self, value: Any) -> datetime | None:
        """Read it as an instant in UTC, ``None`` where it is left empty."""
        given: datetime | None = super().clean(value)
        if given is None:
            return None
        if timezone.is_naive(given):
            given = _in_zone(given)
        try:
            given = given.astimezone(UTC)
        except OverflowError:
            raise ValidationError(_("This is too far away; leave it empty instead.")) from None
        if given <= system_clock.now():
            raise ValidationError(self.past)
        return given


def _in_zone(given: datetime) -> datetime:
    """Read a local time as Django does where ``USE_TZ`` is on: not one that is two, or none."""
    zone = timezone.get_current_timezone()
    first, second = (given.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        raise ValidationError(_("The clocks show this time twice, or never; choose another one."))
    return first


class ActForm(forms.Form):
    """Ask for a note."""

    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Why you do this, for whoever looks at the task later."),
    )

    @property
    def note_given(self) -> str:
        """Return the note, once the form is valid."""
        return str(self.cleaned_data["note"])

    @property
    def said(self) -> dict[str, Any]:
        """Return what else the act is told, once the form is valid."""
        return {}


class PauseForm(ActForm):
    """Ask for a note and for the end of a pause."""

    until = FutureField(label=_("Until"), past=_("The end of the pause must be in the future."))
    field_order = ["until", "note"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zone = timezone.get_current_timezone_name()
        text = _("A time in %(zone)s. Left empty, the pause lasts until someone resumes the task.")
        self.fields["until"].help_text = text % {"zone": zone}

    @property
    def said(self) -> dict[str, Any]:
        """Return when the pause ends."""
        return {"until": self.cleaned_data["until"]}
