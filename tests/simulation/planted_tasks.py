"""Mistakes in what is due, in sets, in retries and in what people ask for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.core import decide, events, missed
from django_declarative_cron.core.retry import FixedDelay
from django_declarative_cron.core.state import Story, TaskState
from django_declarative_cron.models import TaskRun
from django_declarative_cron.store import apply_plan, claims, operator_actions, results, rows

from .planting import after, around, fault


class _Until:
    """A schedule that knows of nothing due after an instant."""

    def __init__(self, schedule: Any, until: Any) -> None:
        self._schedule, self._until = schedule, until

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schedule, name)

    def latest_at_or_before(self, instant: Any) -> Any:
        return self._schedule.latest_at_or_before(min(instant, self._until))


# --- occurrences -------------------------------------------------------------------


@fault("S1", "every occurrence is accounted for")
def _drop_the_high_water_mark(patch: pytest.MonkeyPatch) -> None:
    after(
        patch,
        events.TaskRunStarted,
        lambda _, before, after: replace(after, discharged_at=before.discharged_at),
    )


@fault("L1", "every occurrence is accounted for")
def _clear_what_is_pending_at_success(patch: pytest.MonkeyPatch) -> None:
    after(
        patch,
        events.TaskRunCompleted,
        lambda event, _, after: replace(after, discharged_at=max(after.mark, event.at)),
    )


@fault("every occurrence is accounted for")
def _lose_the_follow_up_of_a_failure(patch: pytest.MonkeyPatch) -> None:
    after(
        patch,
        events.TaskRunFailed,
        lambda event, _, after: replace(after, discharged_at=max(after.mark, event.at)),
    )


@fault("S1", "S2")
def _catch_up_every_missed_occurrence(patch: pytest.MonkeyPatch) -> None:
    def due(real: Any, story: Story, case: Any, *more: Any) -> Story:
        following = case.schedule.next_after(story.state.mark)
        until = following if following is not None and following <= case.now else case.now
        return real(story, case._replace(schedule=_Until(case.schedule, until)), *more)

    around(patch, decide, "_due", due)


@fault("every occurrence is accounted for")
def _forget_the_row_of_the_missed(patch: pytest.MonkeyPatch) -> None:
    around(patch, decide, "passed_over", lambda real, *args: [])


@fault("every occurrence is accounted for")
def _count_one_missed_too_many(patch: pytest.MonkeyPatch) -> None:
    def skip(real: Any, *args: Any) -> Any:
        told = real(*args)
        return replace(told, count=told.count + 1) if told.count > 1 else told

    around(patch, missed, "_skip", skip)


@fault("every occurrence is accounted for")
def _count_a_fold_twice(patch: pytest.MonkeyPatch) -> None:
    _decide_by(patch, fold="both")


@fault("S1", "every occurrence is accounted for")
def _run_a_gap(patch: pytest.MonkeyPatch) -> None:
    _decide_by(patch, gap="shift")


def _decide_by(patch: pytest.MonkeyPatch, **rules: Any) -> None:
    """Decide by other rules of civil time than the declaration's."""

    def decided(real: Any, state: Any, schedule: Any, *more: Any) -> Any:
        return real(state, replace(schedule, **rules), *more)

    around(patch, claims, "decide", decided)


@fault("lost minutes are told once")
def _tell_nothing_of_a_gap(patch: pytest.MonkeyPatch) -> None:
    def unserved(real: Any, *args: Any) -> list[TaskRun]:
        return [run for run in real(*args) if run.reason != "dst_skip"]

    around(patch, rows, "unserved_rows", unserved)


# --- first comings and overrides -----------------------------------------------------


@fault("L1")
def _lose_the_boot_obligation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply_plan.Known, "boot_of", lambda *_: None)


@fault("S1", "S2", "no occurrence succeeds twice")
def _boot_run_twice_in_a_minute(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        apply_plan.Known,
        "boot_of",
        lambda known, name: None if name in known.running else known.owed.get(name),
    )


@fault("S1", "every occurrence is accounted for")
def _owe_the_past_at_a_first_coming(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        apply_plan,
        "first_coming",
        lambda real, event: replace(real(event), discharged_at=None, registered_at=_earlier(event)),
    )


def _earlier(event: events.Event) -> Any:
    return event.at - timedelta(hours=6)


@fault("S1", "state follows history")
def _keep_a_retry_through_an_override(patch: pytest.MonkeyPatch) -> None:
    after(
        patch,
        events.TaskOverridden,
        lambda _, before, after: replace(after, pending_retry_until=before.pending_retry_until),
    )


# --- retries -------------------------------------------------------------------------


@fault("L1", "tasks are looked at in time")
def _ignore_pre_emption(patch: pytest.MonkeyPatch) -> None:
    def decided(
        real: Any, state: TaskState, schedule: Any, retry: Any, now: Any, *more: Any
    ) -> Any:
        pending = state.pending_retry_until
        if pending is None or pending <= now:
            return real(state, schedule, retry, now, *more)
        return real(state, _Until(schedule, state.mark), retry, now, *more)

    def settled(real: Any, story: Story, *more: Any) -> Any:
        decision = real(story, *more)
        pending = decision.state.pending_retry_until
        waits = pending is not None and decision.wake_at is not None
        return replace(decision, wake_at=max(pending, decision.wake_at)) if waits else decision

    around(patch, claims, "decide", decided)
    for module in (decide, results):
        around(patch, module, "settle", settled)


@fault("S1", "state follows history")
def _keep_a_stale_retry(patch: pytest.MonkeyPatch) -> None:
    after(
        patch,
        events.TaskRunStarted,
        lambda _, before, after: replace(after, pending_retry_until=before.pending_retry_until),
    )


@fault("S1", "state follows history")
def _retry_before_its_time(patch: pytest.MonkeyPatch) -> None:
    around(
        patch,
        FixedDelay,
        "latest_retry_at",
        lambda real, self, ended: ended + (real(self, ended) - ended) / 2,
    )


@fault("L1", "state follows history")
def _retry_never(patch: pytest.MonkeyPatch) -> None:
    after(
        patch,
        events.TaskRunFailed,
        lambda _, before, after: replace(after, pending_retry_until=None),
    )


# --- people --------------------------------------------------------------------------


@fault("a pause discharges")
def _run_paused_occurrences_at_resume(patch: pytest.MonkeyPatch) -> None:
    def ended(real: Any, story: Story, schedule: Any, at: Any, **why: Any) -> Story:
        return Story(
            replace(story.state, paused_since=None, paused_until=None),
            (*story.events, events.TaskResumed(at=at, task_name=story.state.name, author="")),
        )

    for module in (decide, apply_plan, operator_actions):
        around(patch, module, "end_pause", ended)


@fault("a pause discharges")
def _run_through_a_pause(patch: pytest.MonkeyPatch) -> None:
    after(
        patch,
        events.TaskPaused,
        lambda _, before, after: replace(after, paused_since=None, paused_until=None),
    )
