"""Post to an address from the settings, with retries; errors never contain the address."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from .. import __version__
from ..exceptions import words_of
from .delivery import DeliveryError

RETRIES = 2
BACKOFF = 1.0
"""Factor of urllib3: the first retry is immediate, the second follows after two seconds."""

_RETRIED = frozenset({408, 425, 429, *range(500, 600)})


def post(
    url: str,
    timeout: timedelta,
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> None:
    """Post a body, and retry errors of the connection and of the server.

    Raises:
        DeliveryError: the receiver did not accept it, or urllib3 is not installed.
    """
    try:
        import urllib3

        from ..runtime.exchange import Exchanges
    except ImportError:
        text = 'urllib3 is not installed: install "django-declarative-cron[events]"'
        raise DeliveryError(text) from None
    sent = {"user-agent": f"django-declarative-cron/{__version__}", **(headers or {})}
    options: dict[str, Any] = {
        "timeout": urllib3.Timeout(total=timeout.total_seconds()),
        "retries": _retries(urllib3),
        "redirect": False,
        "preload_content": False,
    }
    try:
        # Requests are rare, so a connection that was kept would be closed by the receiver.
        with Exchanges() as pool:
            response = pool.request("POST", url, body=body, headers=sent, **options)
            response.close()
    except Exception as error:
        cause = getattr(error, "reason", None) or error
        text = f"{type(cause).__name__}: {words_of(cause)}"
        raise DeliveryError(_without_address(url, text)) from None
    if not 200 <= response.status < 300:
        raise DeliveryError(f"it answered {response.status}")


def _retries(urllib3: Any) -> Any:
    return urllib3.Retry(
        RETRIES,
        backoff_factor=BACKOFF,
        allowed_methods=None,
        status_forcelist=_RETRIED,
        raise_on_status=False,
        respect_retry_after_header=False,
    )


def _without_address(url: str, text: str) -> str:
    parts = urlsplit(url)
    for secret in (url, f"{parts.path}?{parts.query}", parts.path):
        if len(secret) > 1:
            text = text.replace(secret, "…")
    return text
