"""Who calls, and what for: the bearer of a token, or a user with the permissions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest
from django.middleware.csrf import CsrfViewMiddleware

from ..conf import options
from ..core.http_api import PERMISSIONS, Right
from ..runtime.clock import system_clock
from ..store import access_tokens
from .guesses import Digests
from .parsing import ACCEPTED, unsupported_type
from .responses import RefusedError
from .throttling import Rates

_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="ojs"'}
_FAILURES: Final = 60
"""How many refused requests a minute one address has."""

rates: Final = Rates()
digests: Final = Digests()


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls.

    Args:
        name: for the history.
        key: by which requests are counted.
        rights: everything the caller may do.
        user_key: primary key of the user, where it is one.
    """

    name: str
    key: str
    rights: Collection[Right]
    user_key: str = ""

    @property
    def may_read(self) -> bool:
        """Return whether answers may show the caller how a task is declared."""
        return Right.READ in self.rights


class _Csrf(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def admit(request: HttpRequest, right: Right) -> Caller:
    """Let a caller in.

    Raises:
        RefusedError: 401 for nobody, 403 without the right or without a CSRF token beside a
            session, 429 after too many requests.
    """
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    is_token = scheme.lower() == "bearer"
    caller = _bearer(request, credentials.strip()) if is_token else _user(request)
    rates.spend(caller.key, options().HTTP_RATE, system_clock.monotonic())
    if right not in caller.rights:
        message = f"{caller.name!r} lacks the right {str(right)!r}."
        raise RefusedError(403, "forbidden", message, details={"right": str(right)})
    return caller


def _bearer(request: HttpRequest, credentials: str) -> Caller:
    is_guess = _has_failed_too_often(request) and not digests.may_have(credentials)
    row = None if is_guess else access_tokens.bearer(credentials, system_clock.now())
    if row is None:
        raise _nobody(request, "The access token is not valid.")
    return Caller(f"token {row.name}", f"token {row.key}", access_tokens.rights_of(row))


def _user(request: HttpRequest) -> Caller:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated or not user.is_active:
        raise _nobody(request, "An access token is needed: Authorization: Bearer …")
    if request.method not in ("GET", "HEAD"):
        _require_csrf_token(request)
    # ADMIN_ACTIONS leaves people nothing but looking, here as in the admin.
    possible = Right if options().ADMIN_ACTIONS else (Right.READ,)
    rights = frozenset(right for right in possible if user.has_perm(PERMISSIONS[right]))
    return Caller(user.get_username(), f"user {user.pk}", rights, str(user.pk))


def _nobody(request: HttpRequest, message: str) -> RefusedError:
    rates.spend(_nobody_at(request), _FAILURES, system_clock.monotonic())
    return RefusedError(401, "unauthenticated", message, headers=_CHALLENGE)


def _has_failed_too_often(request: HttpRequest) -> bool:
    return rates.is_spent(_nobody_at(request), _FAILURES, system_clock.monotonic())


def _nobody_at(request: HttpRequest) -> str:
    return f"nobody {request.META.get('REMOTE_ADDR', '')}"


def _require_csrf_token(request: HttpRequest) -> None:
    """Hold a session to what Django's own forms are held to; a token is exempt from it."""
    if request.method == "POST" and request.content_type not in ACCEPTED:
        # Django would read a form before it says no.
        raise unsupported_type()
    check = _Csrf(lambda request: None)  # type: ignore[arg-type]
    check.process_request(request)
    reason: Any = check.process_view(request, None, (), {})  # type: ignore[arg-type]
    if reason:
        raise RefusedError(403, "forbidden", f"CSRF verification failed: {reason}")
