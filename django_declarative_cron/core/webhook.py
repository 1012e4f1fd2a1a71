"""How an event is posted: headers and signature, as Standard Webhooks 1.0 has them."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Final

PREFIX: Final = "whsec_"
LEAST_KEY: Final = 24
"""The fewest bytes that a secret may have; Standard Webhooks says 24 to 64."""

CONTENT_TYPE: Final = "application/cloudevents+json; charset=utf-8"


def key_of(secret: str) -> bytes:
    """Give the key that a secret stands for.

    Args:
        secret: ``whsec_`` and Base64.

    Raises:
        ValueError: it is written otherwise, or too short; the message does not have it.
    """
    if not secret.startswith(PREFIX):
        raise ValueError(f"must begin with {PREFIX}")
    try:
        text = secret.removeprefix(PREFIX)
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"must be Base64 after {PREFIX}") from None
    if len(key) < LEAST_KEY:
        raise ValueError(f"must stand for at least {LEAST_KEY} bytes, not {len(key)}")
    return key


def headers(event_id: str, body: bytes, now: datetime, secrets: Iterable[str]) -> dict[str, str]:
    """Give the headers of one attempt to deliver an event.

    Args:
        event_id: the same in each attempt.
        body: as it is posted.
        now: the instant of this attempt.
        secrets: each signs, so that a receiver may know the old one or the new one; without
            any nothing is signed.
    """
    stamp = str(int(now.timestamp()))
    found = {
        "content-type": CONTENT_TYPE,
        "webhook-id": event_id,
        "webhook-timestamp": stamp,
    }
    signatures = " ".join(_sign(key_of(secret), event_id, stamp, body) for secret in secrets)
    return found | ({"webhook-signature": signatures} if signatures else {})


def _sign(key: bytes, event_id: str, stamp: str, body: bytes) -> str:
    signed = b".".join((event_id.encode(), stamp.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, sha256)).decode()
