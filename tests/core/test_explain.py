"""Why a task ran or did not: constructed situations, and the answer to each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.core.explain import Cause, Facts, Pause, Row, explain_facts
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.core.state import TaskState
from django_declarative_cron.cron import parse, validate_zone

NOW = datetime(2026, 11, 28, 10, 30, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def hour(number: int, minute: int = 0, day: int = 28) -> datetime:
    return datetime(2026, 11, day, number, minute, tzinfo=UTC)


def facts(cron: str = "0 * * * *", zone: str = "UTC", **given: Any) -> Facts:
    """An hourly task that ran at 10:00 as it should."""
    state: dict[str, Any] = {
        "name": "a",
        "registered_at": hour(0, day=1),
        "discharged_at": hour(10),
        "last_attempt_at": hour(10),
        **given.pop("state", {}),
    }
    schedule = given.pop("schedule", Schedule(parse(cron), validate_zone(zone)))
    return Facts(now=NOW, state=TaskState(**state), schedule=schedule, **given)


def row(at: datetime, outcome: str = "succeeded", reason: str = "due", **given: Any) -> Row:
    details: dict[str, Any] = {
        "key": 7,
        "scheduled_for": at,
        "scheduled_from": None,
        "started_at": at,
        "finished_at": at + MINUTE,
        **given,
    }
    return Row(outcome=outcome, reason=reason, **details)


def of_state(**state: Any) -> Facts:
    return facts(state=state)


def with_rows(*rows: Row, **state: Any) -> Facts:
    return facts(state=state, rows=rows)


def not_run(at: datetime, reason: str, outcome: str = "skipped", **given: Any) -> Row:
    return row(at, outcome, reason, started_at=None, **{"finished_at": at + HOUR, **given})


AT_NIGHT = ("30 2 * * *", "Europe/Berlin")
PAUSE = Pause(since=hour(6), until=hour(9), author="ada", note="stocktaking")
BEHIND = {"discharged_at": hour(8)}
PRESENT = [
    ("never ran", facts(), Cause.NEVER_RAN, hour(11)),
    ("history gone", of_state(run_count=3), Cause.NOT_DUE, hour(11)),
    ("ran", with_rows(row(hour(10))), Cause.LAST_RAN, hour(11)),
    ("broken", facts(problem="no module named shop"), Cause.BROKEN, None),
    ("a damaged row", facts(schedule=None, problem="bad cron"), Cause.BROKEN, None),
    ("disabled", facts(enabled=False), Cause.DISABLED, None),
    ("running", of_state(running=True), Cause.RUNNING, None),
    ("paused", of_state(paused_since=hour(9)), Cause.PAUSED, None),
    ("until", of_state(paused_since=hour(9), paused_until=hour(12)), Cause.PAUSED, hour(12)),
    ("retry", of_state(pending_retry_until=hour(10, 40)), Cause.RETRY_PENDING, hour(10, 40)),
    (
        "the next occurrence pre-empts the retry",
        *(of_state(pending_retry_until=hour(11, 15)), Cause.RETRY_PREEMPTED, hour(11)),
    ),
    ("asked for", of_state(run_requested_at=NOW), Cause.REQUESTED, None),
    ("overdue, nobody there", facts(state=BEHIND, is_attended=False), Cause.NO_LEADER, None),
    ("overdue though somebody is", facts(state=BEHIND), Cause.LATE, None),
    ("never again", facts("0 0 29 2 *"), Cause.NEVER_RAN, datetime(2028, 2, 29, tzinfo=UTC)),
]


@pytest.mark.parametrize(("name", "given", "cause", "until"), PRESENT, ids=lambda each: str(each))
def test_the_present_has_one_cause(
    name: str, given: Facts, cause: Cause, until: datetime | None
) -> None:
    answer = explain_facts(given)
    assert (answer.cause, answer.until) == (cause, until)


LONG_RUN = row(hour(8), key=3, finished_at=hour(9, 10))
UNFINISHED: dict[str, Any] = {"finished_at": None}
PAST = [
    ("it ran", with_rows(row(hour(10))), hour(10), Cause.RAN),
    ("it ran by hand", with_rows(row(hour(9, 17), reason="manual")), hour(9, 17), Cause.RAN),
    (
        "it is still running",
        *(with_rows(row(hour(10), "running", **UNFINISHED), running=True), hour(10), Cause.RUNNING),
    ),
    ("it ran late", with_rows(row(hour(9), started_at=hour(9, 40))), hour(9), Cause.RAN_LATE),
    ("not due", facts(), hour(9, 17), Cause.NOT_DUE),
    (
        "paused then",
        *(facts(rows=(not_run(hour(8), "disabled"),), pauses=(PAUSE,)), hour(8), Cause.PAUSED),
    ),
    ("disabled then", with_rows(not_run(hour(8), "disabled")), hour(8), Cause.DISABLED),
    (
        "no scheduler, one of a range",
        with_rows(not_run(hour(9), "no_scheduler", "missed", scheduled_from=hour(5))),
        *(hour(7), Cause.NO_SCHEDULER),
    ),
    ("overlap", with_rows(LONG_RUN, not_run(hour(9), "overlap_skip")), hour(9), Cause.OVERLAP),
    ("coalesced", with_rows(LONG_RUN, not_run(hour(9), "coalesced")), hour(9), Cause.COALESCED),
    (
        "due during a run that goes on",
        with_rows(row(hour(9), "running", **UNFINISHED), running=True, discharged_at=hour(9)),
        *(hour(10), Cause.COALESCED),
    ),
    (
        "nobody has looked yet",
        *(facts(state={"discharged_at": hour(9)}, is_attended=False), hour(10), Cause.NO_LEADER),
    ),
    (
        "under a pause that lasts",
        *(of_state(paused_since=hour(9, 30), discharged_at=hour(9)), hour(10), Cause.PAUSED),
    ),
    (
        "import broken since",
        facts(state={"discharged_at": hour(9)}, problem="no module named shop"),
        *(hour(10), Cause.BROKEN),
    ),
    ("not registered", of_state(registered_at=hour(9, 30)), hour(8), Cause.NOT_REGISTERED),
    (
        "in the minute of the registration, whose start came in the next one",
        of_state(registered_at=hour(9) + timedelta(seconds=59)),
        *(hour(9), Cause.NOT_REGISTERED),
    ),
    (
        "in the minute of the registration, whose start is to come",
        of_state(registered_at=hour(9) + timedelta(seconds=59), boot_at=hour(9)),
        *(hour(9), Cause.LATE),
    ),
    (
        "overridden",
        facts(state={"registered_at": hour(9, 30)}, known_before=True),
        *(hour(8), Cause.OVERRIDDEN),
    ),
    ("pruned", facts(history_from=hour(9)), hour(8), Cause.FORGOTTEN),
    (
        "between a failure and its retry",
        with_rows(row(hour(9), "failed"), row(hour(9, 20), reason="retry")),
        *(hour(9, 10), Cause.RETRY_PENDING),
    ),
    ("in a gap", facts(*AT_NIGHT), datetime(2026, 3, 29, 1, 30, tzinfo=UTC), Cause.GAP),
    (
        "the second time of a fold",
        facts(*AT_NIGHT, state={"registered_at": hour(0, day=1) - 99 * HOUR * 24}),
        *(datetime(2026, 10, 25, 1, 30, tzinfo=UTC), Cause.FOLD),
    ),
]
FUTURE = [
    ("it will run", facts(), hour(12), Cause.WILL_RUN),
    ("not due then", facts(), hour(12, 30), Cause.NOT_DUE),
    ("still paused", of_state(paused_since=hour(9)), hour(12), Cause.PAUSED),
    (
        "after the pause",
        *(of_state(paused_since=hour(9), paused_until=hour(11)), hour(12), Cause.WILL_RUN),
    ),
    ("retry", of_state(pending_retry_until=hour(10, 40)), hour(10, 40), Cause.RETRY_PENDING),
    ("a gap to come", facts(*AT_NIGHT), datetime(2027, 3, 28, 1, 30, tzinfo=UTC), Cause.GAP_AHEAD),
]


@pytest.mark.parametrize(
    ("name", "given", "at", "cause"), [*PAST, *FUTURE], ids=lambda each: str(each)[:40]
)
def test_the_past_and_the_future_have_one_cause(
    name: str, given: Facts, at: datetime, cause: Cause
) -> None:
    assert explain_facts(given, at).cause is cause


@pytest.mark.parametrize(
    ("others", "blocked_by", "key"),
    [((LONG_RUN,), None, 3), ((row(hour(7), key=5, finished_at=hour(7, 10)),), 5, 5)],
)
def test_an_answer_names_what_was_in_the_way(
    others: tuple[Row, ...], blocked_by: int | None, key: int
) -> None:
    skipped = not_run(hour(9), "overlap_skip", blocked_by=blocked_by)
    answer = explain_facts(with_rows(*others, skipped), hour(9))
    assert answer.row is not None
    assert answer.row.key == key


def test_an_answer_names_who_paused_and_until_when() -> None:
    rows = (not_run(hour(8), "disabled"),)
    answer = explain_facts(facts(rows=rows, pauses=(PAUSE,)), hour(8, 0))
    assert (answer.pause, answer.until) == (PAUSE, hour(9))
