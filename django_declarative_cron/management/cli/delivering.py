"""``cron events``: what waits for its receiver, and why; what was set aside, tried again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ... import conf
from ...models import OutboxEvent
from ...store import database, outbox
from .scope import Scope
from .subcommand import Context, Options, Subcommand, add_format
from .table import Cell
from .upcoming import amount
from .words import count, iso, local

_SHOWN = 20


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--try-again",
        action="store_true",
        help="let events that were refused for too long be delivered after all",
    )
    parser.add_argument(
        "-n", type=amount, default=_SHOWN, metavar="N", help=f"how many are shown; {_SHOWN}"
    )
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope = Scope.current()
    again = 0
    if options["try_again"]:
        again = outbox.try_again(database.alias(), conf.options().DEPLOYMENT)
    rows = OutboxEvent.objects.using(scope.using).filter(scheduler__deployment=scope.deployment)
    total = rows.count()
    shown = list(rows.defer("body").order_by("id")[: max(options["n"], 0)])
    if options["format"] == "json":
        context.terminal.data(
            {"total": total, "tried_again": again, "events": [_record(row) for row in shown]}
        )
        return
    if options["try_again"]:
        context.terminal.say(f"{count(again, 'event')} to be tried again.")
    if not total:
        context.terminal.say("No event waits.", "SUCCESS")
        return
    context.terminal.table([_line(row) for row in shown])
    if total > len(shown):
        context.terminal.say(f"{count(total - len(shown), 'more event')}.")


def _line(row: OutboxEvent) -> list[Cell]:
    standing = "waits" if row.set_aside_at is None else "set aside"
    refused = [f"refused {count(row.attempts, 'time')}: {row.error}"] if row.attempts else []
    happened = local(row.created_at, conf.project_zone())
    texts = [[happened], [row.type], [row.task_name or ""], [standing, *refused]]
    return [Cell(tuple(lines)) for lines in texts]


def _record(row: OutboxEvent) -> dict[str, Any]:
    return {
        "id": str(row.event_id),
        "type": row.type,
        "task": row.task_name,
        "happened_at": iso(row.created_at),
        "attempts": row.attempts,
        "next_attempt_at": iso(row.next_attempt_at),
        "set_aside_at": iso(row.set_aside_at),
        "error": row.error,
    }


EVENTS = Subcommand("events", "show the events that wait for their receiver", _arguments, _answer)
