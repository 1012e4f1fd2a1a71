"""``cron outbox``: show events that wait for delivery; requeue dead-lettered ones."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass
from typing import Any

from ... import conf
from ...formatting import format_count, format_instant
from ...models import OutboxEvent
from ...store import database, outbox
from .deployment_scope import Scope
from .subcommand import Context, Options, Subcommand, add_format, whole, write
from .terminal import Cell, Terminal

_SHOWN = 20
_HEADER = ("HAPPENED", "EVENT", "TASK", "STATE")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--requeue",
        action="store_true",
        help="requeue dead-lettered events, which were refused for too long",
    )
    parser.add_argument(
        "-n", type=whole, default=_SHOWN, metavar="N", help=f"number of events (default: {_SHOWN})"
    )
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope, requeued = Scope.current(), None
    if options["requeue"]:
        requeued = outbox.requeue(database.alias(), conf.options().DEPLOYMENT)
    rows = OutboxEvent.objects.using(scope.using).filter(scheduler__deployment=scope.deployment)
    shown = list(rows.defer("body").order_by("id")[: options["n"]])
    write(context, options, Outbox(rows.count(), requeued, shown))


@dataclass(frozen=True, slots=True)
class Outbox:
    """Undelivered events, oldest first, and the number of requeued ones if any were asked for."""

    total: int
    requeued: int | None
    events: list[OutboxEvent]

    def as_dict(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "requeued": self.requeued or 0,
            "events": [_event_as_dict(event) for event in self.events],
        }

    def render(self, terminal: Terminal) -> None:
        if self.requeued is not None:
            terminal.say(f"{format_count(self.requeued, 'event')} requeued.")
        if not self.total:
            terminal.say("No event waits.", "SUCCESS")
            return
        terminal.table([_row(event) for event in self.events], _HEADER)
        if self.total > len(self.events):
            terminal.remark(f"{format_count(self.total - len(self.events), 'more event')}.")


def _row(event: OutboxEvent) -> list[Cell]:
    state = ["waits" if event.dead_lettered_at is None else "dead-lettered"]
    if event.attempts:
        state.append(f"refused {format_count(event.attempts, 'time')}: {event.error}")
    happened = format_instant(event.created_at, conf.project_zone())
    columns = [[happened], [event.type], [event.task_name or ""], state]
    return [Cell(tuple(lines)) for lines in columns]


def _event_as_dict(event: OutboxEvent) -> dict[str, Any]:
    return {
        "id": event.event_id,
        "type": event.type,
        "task": event.task_name,
        "happened_at": event.created_at,
        "attempts": event.attempts,
        "next_attempt_at": event.next_attempt_at,
        "dead_lettered_at": event.dead_lettered_at,
        "error": event.error,
    }


OUTBOX = Subcommand("outbox", "show events that wait for delivery", _arguments, _answer)
