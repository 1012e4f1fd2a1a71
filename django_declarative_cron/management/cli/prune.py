"""``cron prune``: delete old history now, in small batches that do not block others."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from functools import partial
from uuid import uuid4

from ... import conf
from ...formatting import format_count
from ...store import pruning
from ...store.guard import Member
from .deployment_scope import Scope
from .subcommand import Context, Options, Progress, Subcommand, add_format, whole


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--days", type=whole, help="keep this many days, instead of HISTORY_MAX_AGE"
    )
    parser.add_argument(
        "--runs",
        type=partial(whole, most=10_000_000),
        help="keep this many runs of each task, instead of HISTORY_MAX_RUNS",
    )
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope = Scope.current()
    before = scope.runs.count()
    _prune(context, scope, options)
    context.terminal.progress()
    kept = scope.runs.count()
    deleted = before - kept
    if options["format"] == "json":
        data = {"deployment": scope.deployment, "deleted": deleted, "kept": kept}
        context.terminal.data(data)
    else:
        number = format_count(deleted, "row")
        context.terminal.say(f"{number} deleted, {format_count(kept, 'row')} kept.")


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
    progress, after = Progress(context), 0
    while after := pruning.prune_old(member, clock.now() - age, after=after):
        progress.show(f"checked runs up to number {after:,}")
    for name in list(scope.runs.order_by().values_list("task_name", flat=True).distinct()):
        text = f"checking {name}"
        progress.show(text)
        while pruning.prune_surplus(member, name, keep) >= pruning.BATCH:
            progress.show(text)


PRUNE = Subcommand("prune", "delete old history, in small batches", _arguments, _answer)
