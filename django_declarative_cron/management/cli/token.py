"""``cron token``: create, list and revoke access tokens of the HTTP binding."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from datetime import datetime

from django.core.management.base import CommandError

from ...conf import project_zone
from ...core.declarations.values import flaw_of_text
from ...core.http_api import Right
from ...formatting import format_instant
from ...models import AccessToken
from ...store import access_tokens
from .subcommand import (
    Context,
    Options,
    Subcommand,
    act,
    add_author,
    add_format,
    read_instant,
    wrong_use,
)
from .terminal import Cell, cells

_ACTIONS = ("create", "list", "revoke")
_HEADER = ("TOKEN", "RIGHTS", "STATE", "LAST USED")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=_ACTIONS, help="the action")
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="name of the token")
    parser.add_argument(
        "--right",
        action="append",
        dest="rights",
        choices=[str(right) for right in Right],
        help="a permission of its bearer (default: read); repeatable",
    )
    parser.add_argument(
        "--expires",
        metavar="ISO",
        help="expiry of the token, such as 2030-01-31; in TIME_ZONE unless it has an offset",
    )
    parser.add_argument("--yes", action="store_true", help="revoke without asking first")
    add_author(parser)
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    if options["action"] == "list":
        _list(context, options)
        return
    name = options["name"]
    flaw = flaw_of_text(name, one_line=True) or (None if name.strip() else "must not be empty")
    if flaw is not None or len(name) > 255:
        raise wrong_use(f"The name {flaw or 'is too long'}.")
    if options["action"] == "create":
        _create(context, options, name)
    elif options["yes"] or _is_confirmed(context, name):
        _revoke(context, name)


def _create(context: Context, options: Options, name: str) -> None:
    now = context.clock.now()
    rights = [Right(right) for right in options["rights"] or [Right.READ]]
    expires = options["expires"]
    until = None if expires is None else read_instant("--expires", expires)
    if until is not None and until <= now:
        raise wrong_use(f"--expires {expires!r} is in the past.")
    try:
        made = access_tokens.create(
            name, rights, now, author=act(options, now).author, expires_at=until
        )
    except access_tokens.TakenError:
        raise CommandError(f"A token named {name!r} is there already.") from None
    if options["format"] == "json":
        context.terminal.data({"name": name, "token": str(made), "rights": rights})
        return
    context.terminal.say(str(made))
    context.terminal.warn("Keep it now: it is not stored, and is not shown again.")


def _is_confirmed(context: Context, name: str) -> bool:
    if not sys.stdin.isatty():
        raise wrong_use("Revoking asks first: add --yes.")
    context.terminal.say(f"Programs that use the token {name!r} are refused from then on.")
    if input("Revoke it? [y/N] ").strip().lower() in ("y", "yes"):
        return True
    context.terminal.say("Nothing was changed.")
    return False


def _revoke(context: Context, name: str) -> None:
    if not access_tokens.revoke(name, context.clock.now()):
        raise CommandError(f"No valid token is named {name!r}.")
    context.terminal.say(f"Revoked: {name}")


def _list(context: Context, options: Options) -> None:
    rows, now = list(access_tokens.listed()), context.clock.now()
    if options["format"] == "json":
        context.terminal.data([_record(row, now) for row in rows])
    elif rows:
        context.terminal.table([_row(row, now) for row in rows], _HEADER)
    else:
        context.terminal.say("There are no access tokens: nobody but users may call over HTTP.")


def _row(row: AccessToken, now: datetime) -> list[Cell]:
    used = "never" if row.last_used_at is None else format_instant(row.last_used_at, project_zone())
    rights = ", ".join(_rights(row)) or "none"
    return cells(row.name or "", rights, _state(row, now), used)


def _record(row: AccessToken, now: datetime) -> dict[str, object]:
    return {
        "name": row.name,
        "key": row.key,
        "rights": _rights(row),
        "state": _state(row, now),
        "created_by": row.author,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "last_used_at": row.last_used_at,
        "revoked_at": row.revoked_at,
    }


def _rights(row: AccessToken) -> list[str]:
    granted = access_tokens.rights_of(row)
    return [str(right) for right in Right if right in granted]


def _state(row: AccessToken, now: datetime) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if row.expires_at is not None and row.expires_at <= now else "valid"


TOKEN = Subcommand("token", "create, list and revoke tokens of the HTTP API", _arguments, _answer)
