"""Telling people that no scheduler is at work, from a process that is none.

Where every scheduler is dead, none of them can say so. Whoever lives does: a job of the
machine's cron or of Kubernetes, by ``cron notify --check``. What was told is remembered in
Django's cache, so that people are not told at each look.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.core.cache import cache

from .. import conf
from ..core.channels import Channel
from ..core.notifications import MOST_LINES, Message, Notice
from ..runtime.clock import Clock
from ..signals import report
from ..store import metrics_queries
from ..store.task_status import patience
from .channels import deliver
from .delivery import DeliveryError


@dataclass(frozen=True, slots=True)
class Absence:
    """What a look found, and whom it told.

    Args:
        notices: what is wrong.
        told: how many channels were told.
        errors: why others were not, without addresses.
    """

    notices: tuple[Notice, ...]
    told: int
    errors: tuple[str, ...]


def tell_absence(using: str, channels: Iterable[Channel], clock: Clock) -> Absence:
    """Tell people that nobody leads, and what is overdue."""
    options = conf.options()
    found = tuple(_found(using, options.DEPLOYMENT, clock))
    told, errors = 0, []
    for channel in channels:
        wanted = [each for each in found if channel.wants(each.occasion, each.task)]
        fresh = [each for each in wanted if _is_fresh(options.DEPLOYMENT, channel, each)]
        if not fresh:
            continue
        message = Message(options.DEPLOYMENT, tuple(fresh[:MOST_LINES]), len(fresh))
        try:
            deliver(channel, message, uuid.uuid4(), clock.now())
            told += 1
        except DeliveryError as error:
            errors.append(f"{channel.name}: {error}")
            for each in fresh:
                _forget(options.DEPLOYMENT, channel, each)
    return Absence(found, told, tuple(errors))


def _found(using: str, deployment: str, clock: Clock) -> Iterator[Notice]:
    at, within = clock.now(), patience(conf.options().LEASE).total_seconds()
    lead = metrics_queries.lead_of(using, deployment, clock.database_time())
    if lead is None:
        yield Notice("no_leader", "", at, "no scheduler has ever checked in")
        return
    leaderless = lead.leaderless()
    if not any(silent <= within for silent in lead.present.values()):
        words = f"no scheduler is at work, and none was heard of for {lead.silence:.0f} s"
        yield Notice("no_leader", "", at, words)
    elif leaderless is not None and leaderless >= within:
        words = f"no scheduler has led for {leaderless:.0f} s: nothing starts"
        yield Notice("no_leader", "", at, words)
    for task, since in metrics_queries.troubles_of(using, deployment, at).overdue.items():
        words = "it should have started" + (f" at {since:%H:%M:%S} UTC" if since else "")
        yield Notice("overdue", task, at, words)


def _is_fresh(deployment: str, channel: Channel, notice: Notice) -> bool:
    """Return whether a channel has not told of something lately; where unknown, it has not."""
    try:
        seconds = channel.again_after.total_seconds()
        return bool(cache.add(_key(deployment, channel, notice), 1, seconds))
    except Exception as error:
        report("Remembering in the cache what was told", error, then="people are told again")
        return True


def _forget(deployment: str, channel: Channel, notice: Notice) -> None:
    try:
        # Without time to live it is gone at once.
        cache.set(_key(deployment, channel, notice), 1, 0)
    except Exception as error:
        report("Forgetting in the cache what was not told", error, then="it is told later")


def _key(deployment: str, channel: Channel, notice: Notice) -> str:
    words = "\0".join((deployment, channel.name, notice.occasion, notice.task))
    mark = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()
    return f"declarative-cron-told-{mark[:40]}"
