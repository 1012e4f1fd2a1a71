"""Limit the requests of each caller per minute, counted in Django's cache.

A cache that the web processes share counts for all of them; the default cache of Django counts for
each process. If the cache fails, requests are allowed, because tokens are still checked.
"""

from __future__ import annotations

import hashlib
import math
from typing import Final

from django.core.cache import cache

from ..runtime.clock import system_clock
from ..signals import report
from .responses import RefusedError

MINUTE: Final = 60
MAX_FAILURES: Final = 60
"""Failed authentications per minute that one address may have before they get 429."""


def count_request(caller: str, limit: int) -> None:
    """Count a request."""
    if _incremented(_key(caller)) > limit:
        wait = math.ceil(MINUTE - _now() % MINUTE) or MINUTE
        message = f"Too many requests: at most {limit} a minute."
        details, headers = {"retry_after": wait}, {"Retry-After": str(wait)}
        raise RefusedError(429, "rate_limited", message, details=details, headers=headers)


def count_failure(address: str) -> None:
    """Count a failed authentication."""
    count_request(f"failures {address}", MAX_FAILURES)


def _incremented(key: str) -> int:
    try:
        cache.add(key, 0, 2 * MINUTE)
        return int(cache.incr(key))
    except ValueError:
        return 1  # The entry was evicted, or the cache stores nothing.
    except Exception as error:
        report("Counting requests in the cache", error, then="the request is allowed")
        return 0


def _key(name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"declarative-cron-http-{digest}-{int(_now() // MINUTE)}"


def _now() -> float:
    return system_clock.now().timestamp()
