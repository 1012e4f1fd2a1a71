"""``cron outbox``: show events that wait for delivery; requeue dead-lettered ones."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ... import conf
from ...formatting import format_count, format_instant, iso8601
from ...models import OutboxEvent
from ...store import database, outbox
from .scope import Scope
from .subcommand import Context, Options, Subcommand, add_format
from .table import Cell
from .upcoming import amount

_SHOWN = 20


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--requeue",
        action="store_true",
        help="requeue dead-lettered events, which were refused for too long",
    )
    parser.add_argument(
        "-n", type=amount, default=_SHOWN, metavar="N", help=f"how many are shown; {_SHOWN}"
    )
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope = Scope.current()
    again = 0
    if options["requeue"]:
        again = outbox.requeue(database.alias(), conf.options().DEPLOYMENT)
    rows = OutboxEvent.objects.using(scope.using).filter(scheduler__deployment=scope.deployment)
    total = rows.count()
    shown = list(rows.defer("body").order_by("id")[: max(options["n"], 0)])
    if options["format"] == "json":
        context.terminal.data(
            {"total": total, "requeued": again, "events": [_record(row) for row in shown]}
        )
        return
    if options["requeue"]:
        context.terminal.say(f"{format_count(again, 'event')} requeued.")
    if not total:
        context.terminal.say("No event waits.", "SUCCESS")
        return
    context.terminal.table([_line(row) for row in shown])
    if total > len(shown):
        context.terminal.say(f"{format_count(total - len(shown), 'more event')}.")


def _line(row: OutboxEvent) -> list[Cell]:
    standing = "waits" if row.dead_lettered_at is None else "dead-lettered"
    refused = [f"refused {format_count(row.attempts, 'time')}: {row.error}"] if row.attempts else []
    happened = format_instant(row.created_at, conf.project_zone())
    texts = [[happened], [row.type], [row.task_name or ""], [standing, *refused]]
    return [Cell(tuple(lines)) for lines in texts]


def _record(row: OutboxEvent) -> dict[str, Any]:
    return {
        "id": str(row.event_id),
        "type": row.type,
        "task": row.task_name,
        "happened_at": iso8601(row.created_at),
        "attempts": row.attempts,
        "next_attempt_at": iso8601(row.next_attempt_at),
        "dead_lettered_at": iso8601(row.dead_lettered_at),
        "error": row.error,
    }


OUTBOX = Subcommand("outbox", "show the events that wait for their receiver", _arguments, _answer)
