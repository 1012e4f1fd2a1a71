"""The work of a pass, and the statements in which it is done."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.models import Outcome, ScheduledTask, TaskRun
from django_declarative_cron.store import claims, results
from django_declarative_cron.store.results import Result

from .conftest import Deployment

is_postgresql = connection.vendor == "postgresql"

_LIMITS = r"SET |SELECT set_config|UPDATE \S+ SET .?term.? = .*term.*< 0"
_AROUND = re.compile(rf"BEGIN|COMMIT|SAVEPOINT|RELEASE|{_LIMITS}")


def statements(act: Callable[[], object]) -> list[str]:
    """Give the statements of an act, but for what begins, ends and limits a transaction."""
    with CaptureQueriesContext(connection) as captured:
        act()
    said = [query["sql"] for query in captured.captured_queries]
    return [sql for sql in said if not _AROUND.match(sql)]


def initialized(tasks: int) -> Deployment:
    made = Deployment(tasks)
    made.initialize()
    return made


def claim(made: Deployment) -> claims.Claimed:
    return claims.claim_due(made.member, made.by_name, made.now, reaping=False)


def record(made: Deployment, claimed: claims.Claimed) -> results.Recorded:
    ended = [Result(each.run, each.task_name, made.now, succeeded=True) for each in claimed.claims]
    return results.record(made.member, ended, made.now)


def one_pass(made: Deployment) -> tuple[list[str], list[str]]:
    """Give the statements in which all tasks start, and end."""
    tasks = len(made.declarations)
    made.owe_all()
    claimed: list[claims.Claimed] = []
    started = statements(lambda: claimed.append(claim(made)))
    assert len(claimed[0].claims) == tasks
    ended = statements(lambda: record(made, claimed[0]))
    assert TaskRun.objects.filter(outcome=Outcome.SUCCEEDED).count() == tasks
    return started, ended


def write_history(made: Deployment, runs: int) -> None:
    """Write so many successful runs of the first task, a minute after the other, up to now."""
    scheduler = ScheduledTask.objects.values_list("scheduler", flat=True)[0]
    ends = [made.now - timedelta(minutes=number) for number in range(runs)]
    TaskRun.objects.bulk_create(
        TaskRun(
            scheduler_id=scheduler,
            task_name="t0",
            scheduled_for=end,
            started_at=end,
            finished_at=end,
            outcome=Outcome.SUCCEEDED,
            reason="due",
            instance_id=made.member.instance,
        )
        for end in reversed(ends)
    )


def further(rows: int) -> int:
    """Return how many more statements two tables take where a database limits parameters."""
    limit = connection.features.max_query_params
    return 0 if limit is None else 2 * (rows * 60 // limit)
