"""Sending a test message to a channel: by a permission of its own, by POST, and written down."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext, override
from django.views.decorators.http import require_POST

from ..conf import options
from ..core.channels import Channel
from ..core.notifications import trial_message
from ..models import SchedulerInstance, SchedulerState
from ..monitoring.channels import deliver
from ..monitoring.delivery import DeliveryError
from ..runtime.clock import system_clock
from ..store import database
from .absence import AttendedAdmin


class NotifyingAdmin(AttendedAdmin):
    """Let people see whether notifications arrive."""

    def get_urls(self) -> list[URLPattern]:
        """Add the address at which a test message is sent."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_notify"
        # A receiver may take long to answer: no transaction of the request is held open for it.
        alone = transaction.non_atomic_requests(using=database.alias())
        view = alone(require_POST(self.admin_site.admin_view(self.notify_view)))
        return [path("notify/", view, name=name), *super().get_urls()]

    def channels(self, request: HttpRequest) -> dict[str, Any] | None:
        """Return the channels that the user may test, for the template; ``None`` for none."""
        names = [channel.name for channel in options().NOTIFY]
        if not names or not self._may_notify(request):
            return None
        return {"names": names, "url": self.address(SchedulerInstance, "notify")}

    def _may_notify(self, request: HttpRequest) -> bool:
        allowed = self.may_do(request, "notify_schedulerinstance")
        return allowed and self.has_view_permission(request)

    def notify_view(self, request: HttpRequest) -> HttpResponse:
        """Send a test message to one channel."""
        if not self._may_notify(request):
            raise PermissionDenied
        asked = request.POST.get("channel")
        channel = next((each for each in options().NOTIFY if each.name == asked), None)
        if channel is None:
            raise Http404
        self._log(request, channel)
        error = _sent(channel, str(request.user))
        if error:
            words = gettext("The test message was not taken by %(channel)s: %(error)s")
            level = messages.ERROR
        else:
            words = gettext("The test message was taken by %(channel)s.")
            level = messages.SUCCESS
        self.message_user(request, words % {"channel": channel.name, "error": error}, level)
        return HttpResponseRedirect(self.address(SchedulerInstance, "changelist"))

    def _log(self, request: HttpRequest, channel: Channel) -> None:
        deployment = options().DEPLOYMENT
        states = SchedulerState.objects.using(database.alias()).filter(deployment=deployment)
        # As Django does: the log is not written in the language of whoever acted.
        with override(None):
            message = f"{gettext('Send a test message')}: {channel.name}"
        LogEntry.objects.log_actions(
            user_id=str(request.user.pk),
            queryset=[states.first() or SchedulerState(deployment=deployment)],
            action_flag=CHANGE,
            change_message=message,
        )


def _sent(channel: Channel, author: str) -> str:
    """Send a test message; give why it was not taken, which names no address."""
    now = system_clock.now()
    try:
        deliver(channel, trial_message(options().DEPLOYMENT, now, author), uuid.uuid4(), now)
    except DeliveryError as error:
        return str(error)
    return ""
