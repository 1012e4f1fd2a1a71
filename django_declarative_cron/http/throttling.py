"""Limit the requests of each caller per minute, counted in Django's cache.

A cache that the web processes share counts for all of them; the default cache of Django counts for
each process. If the cache fails, requests are allowed, because tokens are still checked.
"""

from __future__ import annotations

import hashlib
import math
from typing import Final

from django.core.cache import cache

from ..core.http_api import read_token
from ..runtime.clock import system_clock
from ..signals import report
from ..store import access_tokens
from .responses import RefusedError

MINUTE: Final = 60
MAX_FAILURES: Final = 60
"""Failed authentications per minute from one address, before further ones cost no query."""

_DIGESTS_FOR: Final = 5


def count_request(caller: str, limit: int) -> None:
    """Count a request.

    Raises:
        RefusedError: 429 beyond the limit, with the seconds to wait.
    """
    if _incremented(_key(caller, MINUTE)) > limit:
        wait = math.ceil(MINUTE - _now() % MINUTE) or MINUTE
        message = f"Too many requests: at most {limit} a minute."
        details, headers = {"retry_after": wait}, {"Retry-After": str(wait)}
        raise RefusedError(429, "rate_limited", message, details=details, headers=headers)


def count_failure(address: str) -> None:
    """Count a failed authentication.

    Raises:
        RefusedError: 429 beyond the limit.
    """
    count_request(f"failures {address}", MAX_FAILURES)


def is_guess(address: str, credentials: str) -> bool:
    """Return whether credentials can be rejected without a query.

    That is so if the address failed too often, and the token was not valid some seconds ago.
    """
    try:
        failures = cache.get(_key(f"failures {address}", MINUTE), 0)
        return failures >= MAX_FAILURES and not _was_valid(credentials)
    except Exception as error:
        _report(error)
        return False


def _was_valid(credentials: str) -> bool:
    token = read_token(credentials)
    if token is None:
        return False
    key = _key("digests", _DIGESTS_FOR)
    digests = cache.get(key)
    if digests is None:
        digests = access_tokens.digests(system_clock.now())
        cache.set(key, digests, _DIGESTS_FOR)
    return token.fits(digests.get(token.key))


def _incremented(key: str) -> int:
    try:
        cache.add(key, 0, 2 * MINUTE)
        return int(cache.incr(key))
    except ValueError:
        return 1  # The entry was evicted, or the cache stores nothing.
    except Exception as error:
        _report(error)
        return 0


def _key(name: str, seconds: int) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"declarative-cron-http-{digest}-{int(_now() // seconds)}"


def _now() -> float:
    return system_clock.now().timestamp()


def _report(error: Exception) -> None:
    report("Counting requests in the cache", error, then="the request is allowed")
