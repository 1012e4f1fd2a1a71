"""One request to an address that the settings name; what it says of a failure has no address."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from .. import __version__
from ..exceptions import words_of
from .delivery import DeliveryError

_AGAIN = {408, 425, 429}


def ask(
    url: str,
    timeout: timedelta,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> None:
    """Post something.

    Raises:
        DeliveryError: it was not taken; without the address, which may be a secret.
    """
    http = _library()
    sent = {"user-agent": f"django-declarative-cron/{__version__}", **(headers or {})}
    try:
        # Of its own each time: what comes rarely finds a kept connection closed.
        with _exchanges() as pool:
            answer = pool.request(
                "POST",
                url,
                body=body,
                headers=sent,
                timeout=http.Timeout(total=timeout.total_seconds()),
                redirect=False,
                preload_content=False,
            )
            status = answer.status
            answer.close()
    except Exception as error:
        raise DeliveryError(_without(url, f"{type(error).__name__}: {words_of(error)}")) from None
    if not 200 <= status < 300:
        is_final = 300 <= status < 500 and status not in _AGAIN
        raise DeliveryError(f"it answered {status}", is_final=is_final)


def _without(url: str, words: str) -> str:
    parts = urlsplit(url)
    for secret in (url, f"{parts.path}?{parts.query}", parts.path):
        if len(secret) > 1:
            words = words.replace(secret, "…")
    return words


def _exchanges() -> Any:
    from ..runtime.exchange import Exchanges

    return Exchanges()


def _library() -> Any:
    try:
        import urllib3
    except ImportError:
        raise DeliveryError(
            'urllib3 is not installed: install "django-declarative-cron[events]"', is_final=True
        ) from None
    return urllib3
