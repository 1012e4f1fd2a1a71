"""Handing a message to one channel: mail, Slack and what speaks as it does, or a webhook."""

from __future__ import annotations

import json
import uuid
from datetime import datetime

from ..core.channels import Channel, signature_headers
from ..core.notifications import Message
from ..exceptions import words_of
from .delivery import DeliveryError
from .http_client import ask


def deliver(channel: Channel, message: Message, message_id: uuid.UUID, now: datetime) -> None:
    """Hand a message to a channel.

    Raises:
        DeliveryError: it was not taken.
    """
    if channel.kind == "mail":
        _mail(channel, message)
    elif channel.kind == "slack":
        _slack(channel, message)
    else:
        _webhook(channel, message, message_id, now)


def _mail(channel: Channel, message: Message) -> None:
    from django.core.mail import EmailMessage

    mail = EmailMessage(message.subject, "\n".join(message.lines), to=list(channel.to))
    try:
        mail.send()
    except Exception as error:
        # The words of a server may have the addresses in them.
        words = words_of(error)
        for address in channel.to:
            words = words.replace(address, "…")
        raise DeliveryError(f"{type(error).__name__}: {words}") from None


def _slack(channel: Channel, message: Message) -> None:
    text = "\n".join([f"*{_escaped(message.subject)}*", *map(_escaped, message.lines)])
    body = json.dumps({"text": text}).encode()
    ask(channel.url, channel.timeout, body=body, headers={"content-type": "application/json"})


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _webhook(channel: Channel, message: Message, message_id: uuid.UUID, now: datetime) -> None:
    body = json.dumps(message.as_data()).encode()
    signed = signature_headers(str(message_id), body, now, channel.secrets)
    sent = {**channel.headers, **signed, "content-type": "application/json"}
    ask(channel.url, channel.timeout, body=body, headers=sent)
