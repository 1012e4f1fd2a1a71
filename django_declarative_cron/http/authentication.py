"""Authenticate a caller: the bearer of a token, or a user with permissions."""

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
from ..store.operator_actions import Act
from . import throttling
from .parsing import ACCEPTED, unsupported_type
from .responses import RefusedError

_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="ojs"'}


@dataclass(frozen=True, slots=True)
class Caller:
    name: str
    key: str
    rights: Collection[Right]
    user_key: str = ""

    @property
    def may_read(self) -> bool:
        """Return whether responses may contain declarations."""
        return Right.READ in self.rights

    def act(self) -> Act:
        """Return the author and the time of a change, for the audit log."""
        at = system_clock.now()
        return Act(author=self.name, at=at, author_key=self.user_key, note="HTTP")


class _Csrf(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def authenticate(request: HttpRequest, right: Right) -> Caller:
    """Return the caller.

    Raises:
        RefusedError: 401 without valid credentials, 403 without the right or without the CSRF
            token of a session, 429 after too many requests.
    """
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    is_token = scheme.lower() == "bearer"
    caller = _bearer(request, credentials.strip()) if is_token else _user(request)
    throttling.count_request(caller.key, options().HTTP_RATE)
    if right not in caller.rights:
        message = f"{caller.name!r} lacks the right {str(right)!r}."
        raise RefusedError(403, "forbidden", message, details={"right": str(right)})
    return caller


def _bearer(request: HttpRequest, credentials: str) -> Caller:
    row = access_tokens.bearer(credentials, system_clock.now())
    if row is None:
        raise _unauthenticated(request, "The access token is not valid.")
    return Caller(f"token {row.name}", f"token {row.key}", access_tokens.rights_of(row))


def _user(request: HttpRequest) -> Caller:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated or not user.is_active:
        raise _unauthenticated(request, "An access token is needed: Authorization: Bearer …")
    if request.method not in ("GET", "HEAD"):
        _require_csrf_token(request)
    # Without ADMIN_ACTIONS users may only read, as in the admin.
    possible = Right if options().ADMIN_ACTIONS else (Right.READ,)
    rights = frozenset(right for right in possible if user.has_perm(PERMISSIONS[right]))
    return Caller(user.get_username(), f"user {user.pk}", rights, str(user.pk))


def _unauthenticated(request: HttpRequest, message: str) -> RefusedError:
    throttling.count_failure(str(request.META.get("REMOTE_ADDR", "")))
    return RefusedError(401, "unauthenticated", message, headers=_CHALLENGE)


def _require_csrf_token(request: HttpRequest) -> None:
    """Raise if a session has no CSRF token; access tokens need none."""
    if request.method == "POST" and request.content_type not in ACCEPTED:
        # Django would parse a form before it rejects the request.
        raise unsupported_type()
    check = _Csrf(lambda request: None)  # type: ignore[arg-type]
    check.process_request(request)
    reason: Any = check.process_view(request, None, (), {})  # type: ignore[arg-type]
    if reason:
        raise RefusedError(403, "forbidden", f"CSRF verification failed: {reason}")
