"""``cron prune``: forget old history now, in small batches that nobody waits for."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any
from uuid import uuid4

from ... import conf
from ...formatting import format_count
from ...models import TaskRun
from ...store import pruning
from ...store.guard import Member
from .scope import Scope
from .subcommand import Context, Options, Subcommand, add_format
from .upcoming import amount

_TELL_EVERY = 0.3


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--days", type=amount, help="keep this many days, instead of HISTORY_MAX_AGE"
    )
    parser.add_argument(
        "--runs", type=_most, help="keep this many runs of each task, instead of HISTORY_MAX_RUNS"
    )
    add_format(parser)


def _most(text: str) -> int:
    return amount(text, most=10_000_000)


def _answer(context: Context, options: Options) -> None:
    scope = Scope.current()
    before = _number(scope)
    _prune(context, scope, options)
    context.terminal.progress()
    deleted, kept = before - _number(scope), _number(scope)
    if options["format"] == "json":
        data: dict[str, Any] = {"deployment": scope.deployment, "deleted": deleted, "kept": kept}
        context.terminal.data(data)
    else:
        context.terminal.say(
            f"{format_count(deleted, 'row')} forgotten, {format_count(kept, 'row')} kept."
        )


def _prune(context: Context, scope: Scope, options: Options) -> None:
    ours, clock = conf.options(), context.clock
    member = Member(
        using=scope.using,
        deployment=scope.deployment,
        instance=uuid4(),
        digest="",
        lease=ours.LEASE,
        renew=ours.RENEW,
        database_time=clock.database_time(),
    )
    days, runs = options["days"], options["runs"]
    age = ours.HISTORY_MAX_AGE if days is None else timedelta(days=days)
    keep = ours.HISTORY_MAX_RUNS if runs is None else runs
    told = _Told(context)
    after = 0
    while after := pruning.prune_old(member, clock.now() - age, after=after):
        told.say(f"looked at runs up to number {after:,}")
    for name in _names(scope):
        told.say(f"looking at {name}")
        while pruning.prune_surplus(member, name, keep) >= pruning.BATCH:
            told.say(f"looking at {name}")


class _Told:
    """Say now and then how far it is, where someone looks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._at = context.clock.monotonic()

    def say(self, text: str) -> None:
        if self._context.clock.monotonic() - self._at >= _TELL_EVERY:
            self._at = self._context.clock.monotonic()
            self._context.terminal.progress(text)


def _names(scope: Scope) -> list[str]:
    runs = TaskRun.objects.using(scope.using).filter(scheduler__deployment=scope.deployment)
    return list(runs.order_by().values_list("task_name", flat=True).distinct())


def _number(scope: Scope) -> int:
    runs = TaskRun.objects.using(scope.using).filter(scheduler__deployment=scope.deployment)
    return runs.count()


PRUNE = Subcommand("prune", "forget old history, in small batches", _arguments, _answer)
