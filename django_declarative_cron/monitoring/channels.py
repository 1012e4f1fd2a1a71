"""Send a message to one channel: mail, Slack and compatible services, or a webhook."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import Any

from ..core.channels import Channel, signature_headers
from ..core.notifications import Message, test_message
from ..exceptions import words_of
from .delivery import DeliveryError
from .http_client import post

MAIL_TIMEOUT = 30
"""Seconds for each step of a delivery by SMTP, unless the project sets a timeout."""


def deliver(channel: Channel, message: Message, message_id: uuid.UUID, now: datetime) -> None:
    """Send a message to a channel.

    Raises:
        DeliveryError: the channel did not accept it.
    """
    if channel.kind == "mail":
        _mail(channel, message)
    elif channel.kind == "slack":
        _slack(channel, message)
    else:
        _webhook(channel, message, message_id, now)


def send_test_message(channel: Channel, deployment: str, author: str, now: datetime) -> str:
    """Send a test message; return why the channel did not accept it, without any URL, or ""."""
    try:
        deliver(channel, test_message(deployment, now, author), uuid.uuid4(), now)
    except DeliveryError as error:
        return str(error)
    return ""


def _mail(channel: Channel, message: Message) -> None:
    from django.core.mail import EmailMessage

    mail = EmailMessage(message.subject, "\n".join(message.lines), to=list(channel.to))
    try:
        _mail_connection().send_messages([mail])
    except Exception as error:
        text = words_of(error)
        for address in channel.to:
            text = text.replace(address, "…")
        raise DeliveryError(f"{type(error).__name__}: {text}") from None


def _mail_connection() -> Any:
    from django.core import mail

    mailers = getattr(mail, "mailers", None)  # Django 6.1 and later.
    connection: Any = mail.get_connection() if mailers is None else mailers.default
    if getattr(connection, "timeout", 0) is None:
        connection.timeout = MAIL_TIMEOUT
    return connection


def _slack(channel: Channel, message: Message) -> None:
    text = "\n".join([f"*{_escaped(message.subject)}*", *map(_escaped, message.lines)])
    body = json.dumps({"text": text}).encode()
    post(channel.url, channel.timeout, body=body, headers={"content-type": "application/json"})


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _webhook(channel: Channel, message: Message, message_id: uuid.UUID, now: datetime) -> None:
    body = json.dumps(message.as_data()).encode()
    try:
        signed = signature_headers(str(message_id), body, now, channel.secrets)
    except ImportError:
        text = 'standardwebhooks is not installed: install "django-declarative-cron[events]"'
        raise DeliveryError(text) from None
    headers = {**channel.headers, **signed, "content-type": "application/json"}
    post(channel.url, channel.timeout, body=body, headers=headers)
