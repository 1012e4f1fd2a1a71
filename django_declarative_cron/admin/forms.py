"""What a person may say with an act."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class ActForm(forms.Form):
    """Ask for a note."""

    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Why you do this, for whoever looks at the task later."),
    )

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        self.now = now
        super().__init__(*args, **kwargs)

    @property
    def note_given(self) -> str:
        """Give the note, once the form is valid."""
        return str(self.cleaned_data["note"])


class PauseForm(ActForm):
    """Ask for a note and for the end of a pause."""

    until = forms.DateTimeField(
        label=_("Until"),
        required=False,
        widget=forms.DateTimeInput(format="%Y-%m-%dT%H:%M", attrs={"type": "datetime-local"}),
    )
    field_order = ["until", "note"]

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, now=now, **kwargs)
        zone = timezone.get_current_timezone_name()
        text = _("A time in %(zone)s. Left empty, the pause lasts until someone resumes the task.")
        self.fields["until"].help_text = text % {"zone": zone}

    def clean_until(self) -> datetime | None:
        """Read the end as an instant in the future."""
        until: datetime | None = self.cleaned_data["until"]
        if until is None:
            return None
        if timezone.is_naive(until):
            until = until.replace(tzinfo=timezone.get_current_timezone())
        try:
            until = until.astimezone(UTC)
        except OverflowError:
            raise ValidationError(_("This is too far away; leave it empty instead.")) from None
        if until <= self.now:
            raise ValidationError(_("The end of the pause must be in the future."))
        return until
