"""Notify operators from outside of the schedulers that no scheduler is at work.

If all schedulers are dead, none of them can send a notification. ``cron notify --check`` does it,
run by the crontab of a host or a Kubernetes CronJob. Django's cache stores the notices that were
sent, so that they are not repeated at each check.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.core.cache import cache

from .. import conf
from ..core.channels import Channel
from ..core.notifications import MAX_LINES, Message, Notice, overdue_notice
from ..runtime.clock import Clock
from ..signals import report
from ..store import overview
from ..store.status import attendance, patience
from .channels import deliver
from .delivery import DeliveryError


@dataclass(frozen=True, slots=True)
class CheckResult:
    notices: tuple[Notice, ...]
    notified: int
    errors: tuple[str, ...]


def check_and_notify(using: str, channels: Iterable[Channel], clock: Clock) -> CheckResult:
    """Notify operators if there is no leader, and of overdue tasks."""
    deployment = conf.options().DEPLOYMENT
    found = tuple(_problems(using, deployment, clock))
    notified, errors = 0, []
    for channel in channels:
        wanted = [each for each in found if channel.wants(each.occasion, each.task)]
        fresh = [each for each in wanted if _remember(deployment, channel, each)]
        if not fresh:
            continue
        message = Message(deployment, tuple(fresh[:MAX_LINES]), len(fresh))
        try:
            deliver(channel, message, uuid.uuid4(), clock.now())
            notified += 1
        except DeliveryError as error:
            errors.append(f"{channel.name}: {error}")
            _forget(_key(deployment, channel, each) for each in fresh)
    return CheckResult(found, notified, tuple(errors))


def _problems(using: str, deployment: str, clock: Clock) -> Iterator[Notice]:
    at, limit = clock.now(), patience(conf.options().LEASE)
    lead = attendance(using, deployment, clock.database_time())
    if lead is None:
        yield Notice("no_leader", "", at, "no scheduler has ever sent a heartbeat")
        return
    leaderless = lead.leaderless()
    if not lead.heard(limit):
        text = f"no scheduler is running: the last heartbeat is {lead.silence:.0f} s old"
        yield Notice("no_leader", "", at, text)
    elif leaderless is not None and leaderless >= limit.total_seconds():
        text = f"no scheduler has led for {leaderless:.0f} s: nothing starts"
        yield Notice("no_leader", "", at, text)
    for task, since in overview.overdue_since(using, deployment, at).items():
        yield overdue_notice(task, since, at)


def _remember(deployment: str, channel: Channel, notice: Notice) -> bool:
    """Return whether the notice was not sent recently; also if the cache does not answer."""
    try:
        seconds = channel.again_after.total_seconds()
        return bool(cache.add(_key(deployment, channel, notice), 1, seconds))
    except Exception as error:
        report("Storing a sent notice in the cache", error, then="it is sent again")
        return True


def _forget(keys: Iterable[str]) -> None:
    try:
        cache.delete_many(list(keys))
    except Exception as error:
        report("Removing unsent notices from the cache", error, then="they are sent later")


def _key(deployment: str, channel: Channel, notice: Notice) -> str:
    text = "\0".join((deployment, channel.name, notice.occasion, notice.task))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"declarative-cron-notice-{digest[:40]}"
