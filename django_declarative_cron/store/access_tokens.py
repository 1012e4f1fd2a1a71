"""Create, verify and revoke access tokens; secrets are never stored."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q, QuerySet

from ..conf import options
from ..core.http_api import Right, Token, read_token
from ..models import AccessToken, SchedulerState
from . import database

_USE: Final = timedelta(minutes=1)
"""How exactly the last use of a token is known."""


class TakenError(ValueError):
    """Raised if a token of that name exists already."""


def create(
    name: str,
    rights: Collection[Right],
    now: datetime,
    *,
    author: str = "",
    expires_at: datetime | None = None,
) -> Token:
    """Create a token; only the returned value contains its secret.

    Raises:
        TakenError: the deployment has a token of that name, perhaps a revoked one.
    """
    token = Token(secrets.token_hex(6), secrets.token_urlsafe(32))
    using = database.alias()
    with database.atomic(using):
        scheduler = _deployment(using)
        if AccessToken.objects.using(using).filter(scheduler=scheduler, name=name).exists():
            raise TakenError(name)
        AccessToken.objects.using(using).create(
            scheduler=scheduler,
            name=name,
            key=token.key,
            digest=token.digest,
            may_read=Right.READ in rights,
            may_register=Right.REGISTER in rights,
            may_work=Right.WORK in rights,
            author=author[:255],
            created_at=now,
            expires_at=expires_at,
        )
    return token


def _deployment(using: str) -> SchedulerState:
    """Return the row of the deployment; a token may exist before any scheduler."""
    name = options().DEPLOYMENT
    states = SchedulerState.objects.using(using)
    states.bulk_create([SchedulerState(deployment=name)], ignore_conflicts=True)
    return states.get(deployment=name)


def listed() -> QuerySet[AccessToken]:
    """Return the tokens of the deployment, revoked ones included."""
    tokens = AccessToken.objects.using(database.alias())
    return tokens.filter(scheduler__deployment=options().DEPLOYMENT).order_by("name")


def revoke(name: str, now: datetime) -> bool:
    """Revoke a token permanently.

    Returns:
        whether a token of that name was valid until now.
    """
    return bool(listed().filter(name=name, revoked_at=None).order_by().update(revoked_at=now))


def bearer(text: str, now: datetime) -> AccessToken | None:
    """Return the presented token, ``None`` if it is not valid."""
    token = read_token(text)
    if token is None:
        return None
    with database.direct(database.alias()):
        not_expired = Q(expires_at=None) | Q(expires_at__gt=now)
        row = listed().filter(not_expired, revoked_at=None, key=token.key).first()
        if not token.fits(None if row is None else row.digest) or row is None:
            return None
        _used(row, now)
    return row


def _used(row: AccessToken, now: datetime) -> None:
    if row.last_used_at is None or now - row.last_used_at >= _USE:
        mine = AccessToken.objects.using(database.alias()).filter(pk=row.pk)
        mine.update(last_used_at=now)
        row.last_used_at = now


def rights_of(row: AccessToken) -> frozenset[Right]:
    granted = {
        Right.READ: row.may_read,
        Right.REGISTER: row.may_register,
        Right.WORK: row.may_work,
    }
    return frozenset(right for right, is_granted in granted.items() if is_granted)
