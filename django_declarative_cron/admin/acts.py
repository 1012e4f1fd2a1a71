"""The acts a person may do to tasks: what each is called, needs, does and says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import ScheduledTask
from ..store import operator_actions
from ..store.queries import Reading, skips_at
from . import formats
from .forms import ActForm, PauseForm

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

Text: TypeAlias = "str | _StrPromise"
Apply: TypeAlias = Callable[..., list[str]]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What an act will do to one task, said before it is done.

    Args:
        name: of the task.
        text: what will happen, or why nothing will.
        takes_effect: whether anything will.
    """

    name: str
    text: str
    takes_effect: bool


@dataclass(frozen=True, slots=True)
class Act:
    """One kind of act.

    Args:
        key: its name in addresses and permissions.
        label: on buttons and in menus.
        question: above the list of what will happen.
        done: said of the tasks it took effect on.
        undone: said of the others.
        apply: takes names, who acts and what the form says; gives the names it took effect on.
        expect: says what it will do; first whether anything.
        form: what a person may say with it.
        right: the act whose permission it needs, where that is another one.
    """

    key: str
    label: Text
    question: Text
    done: Text
    undone: Text
    apply: Apply
    expect: Callable[[ScheduledTask, Reading, datetime], tuple[bool, str]]
    form: type[ActForm] = ActForm
    right: str = ""

    @property
    def codename(self) -> str:
        """Return the codename of its permission."""
        return f"{self.right or self.key}_scheduledtask"

    def expectation(self, task: ScheduledTask, reading: Reading, now: datetime) -> Expectation:
        """Return what the act will do to a task."""
        if reading.schedule is None:
            text = gettext("Its row is damaged (%(reason)s): nothing will change.")
            return Expectation(task.name or "", text % {"reason": reading.problem}, False)
        takes_effect, text = self.expect(task, reading, now)
        return Expectation(task.name or "", text, takes_effect)


def _expect_run(task: ScheduledTask, reading: Reading, now: datetime) -> tuple[bool, str]:
    if reading.problem:
        return True, gettext("Will be tried, though it is broken: %(reason)s") % {
            "reason": reading.problem
        }
    if task.running_run is not None:
        return True, gettext("Is running: will run once more when that run has ended.")
    if task.paused_since is not None:
        return True, gettext("Will run once now, and stay paused.")
    return True, gettext("Will run once now; its schedule stays as it is.")


def _expect_pause(task: ScheduledTask, reading: Reading, now: datetime) -> tuple[bool, str]:
    if task.paused_since is not None and not task.enabled:
        return True, gettext("Is disabled by its declaration: the pause will be kept beside it.")
    if task.paused_since is not None:
        return True, gettext("Is paused already: this pause takes the place of that one.")
    if task.running_run is not None:
        return True, gettext("Is running: that run will end, and no other will start.")
    return True, gettext("No run will start; what falls due is recorded as skipped.")


def _expect_resume(task: ScheduledTask, reading: Reading, now: datetime) -> tuple[bool, str]:
    if not task.enabled:
        return False, gettext("Is disabled by its declaration: change it there.")
    if task.paused_since is None or reading.schedule is None:
        return False, gettext("Is not paused: nothing will change.")
    following = reading.schedule.next_after(now)
    if following is None:
        return True, gettext("Will be active, though its schedule names no instant any more.")
    shown = formats.moment(following)
    return True, format_html(gettext("Will run next at {}; nothing is made up for."), shown)


def _expect_clear(task: ScheduledTask, reading: Reading, now: datetime) -> tuple[bool, str]:
    text = gettext("The retry of {} will not take place.")
    return _of_retry(task, text, gettext("Nothing to clear: no retry is pending."))


def _expect_retry(task: ScheduledTask, reading: Reading, now: datetime) -> tuple[bool, str]:
    text = gettext("Will run once now, in the place of the retry of {}.")
    return _of_retry(task, text, gettext("Nothing to bring forward: no retry is pending."))


def _of_retry(task: ScheduledTask, text: str, without: str) -> tuple[bool, str]:
    if task.pending_retry_until is None:
        return False, without
    return True, format_html(text, formats.moment(task.pending_retry_until))


def _expect_skip(task: ScheduledTask, reading: Reading, now: datetime) -> tuple[bool, str]:
    if not task.enabled:
        return False, gettext("Is disabled by its declaration: nothing runs that could be skipped.")
    if task.paused_since is not None:
        return False, gettext("Is paused already: nothing runs that could be skipped.")
    schedule = reading.schedule
    skips = skips_at(task, now)
    if skips is not None and schedule is not None:
        shown = formats.moment(skips)
        return False, format_html(gettext("Skips its run of {} already: one at a time."), shown)
    skipped = None if schedule is None else schedule.next_after(max(_mark(task), now))
    if schedule is None or skipped is None:
        return False, gettext("Its schedule names no instant any more.")
    following = schedule.next_after(skipped)
    shown = formats.moment(skipped)
    if following is None:
        return True, format_html(gettext("The run of {} will not take place."), shown)
    text = gettext("The run of {} will not take place; the next one is at {}.")
    return True, format_html(text, shown, formats.moment(following))


def _expect_unskip(task: ScheduledTask, reading: Reading, now: datetime) -> tuple[bool, str]:
    skips = skips_at(task, now)
    if skips is None or reading.schedule is None:
        return False, gettext("No run of it is to be skipped.")
    shown = formats.moment(skips)
    return True, format_html(gettext("The run of {} will take place after all."), shown)


def _mark(task: ScheduledTask) -> datetime:
    mark: datetime = max(task.registered_at, task.discharged_at or task.registered_at)
    return mark


RUN = Act(
    key="run",
    label=_("Run now"),
    question=_("Run these tasks now?"),
    done=_("Run requested: %(names)s."),
    undone=_("Not run, because their rows are gone or damaged: %(names)s."),
    apply=operator_actions.request_run,
    expect=_expect_run,
)
PAUSE = Act(
    key="pause",
    label=_("Pause"),
    question=_("Pause these tasks?"),
    done=_("Paused: %(names)s."),
    undone=_("Not paused, because their rows are gone or damaged: %(names)s."),
    apply=operator_actions.pause,
    expect=_expect_pause,
    form=PauseForm,
)
RESUME = Act(
    key="resume",
    label=_("Resume"),
    question=_("Resume these tasks?"),
    done=_("Resumed: %(names)s."),
    undone=_("Nothing to resume: %(names)s."),
    apply=operator_actions.resume,
    expect=_expect_resume,
)
SKIP_NEXT = Act(
    key="skip_next",
    label=_("Skip next run"),
    question=_("Skip the next run of these tasks?"),
    done=_("Next run skipped: %(names)s."),
    undone=_("Nothing to skip: %(names)s."),
    apply=operator_actions.skip_next,
    expect=_expect_skip,
)
RETRY_NOW = Act(
    key="retry_now",
    label=_("Retry now"),
    question=_("Retry these tasks now?"),
    done=_("Retried at once: %(names)s."),
    undone=_("Nothing to retry: %(names)s."),
    apply=operator_actions.retry_now,
    expect=_expect_retry,
)
UNSKIP = Act(
    key="unskip",
    label=_("Skip no run"),
    question=_("Let the next run of these tasks take place after all?"),
    done=_("Next run no longer skipped: %(names)s."),
    undone=_("No run was to be skipped: %(names)s."),
    apply=operator_actions.unskip,
    expect=_expect_unskip,
    right="skip_next",
)
CLEAR_RETRY = Act(
    key="clear_retry",
    label=_("Clear retry state"),
    question=_("Clear the retry state of these tasks?"),
    done=_("Retry state cleared: %(names)s."),
    undone=_("Nothing to clear: %(names)s."),
    apply=operator_actions.clear_retry,
    expect=_expect_clear,
)

_ALL = (RUN, PAUSE, RESUME, SKIP_NEXT, UNSKIP, RETRY_NOW, CLEAR_RETRY)

ACTS = {act.key: act for act in _ALL}

OF_A_RETRY = (RETRY_NOW, CLEAR_RETRY)


def fitting(task: ScheduledTask, now: datetime) -> list[Act]:
    """Return the acts that can change anything about a task as it is; its page offers these."""
    is_paused, skips = task.paused_since is not None, skips_at(task, now) is not None
    idle = {
        RESUME: not is_paused or not task.enabled,
        SKIP_NEXT: is_paused or not task.enabled or skips,
        UNSKIP: not skips,
        **dict.fromkeys(OF_A_RETRY, task.pending_retry_until is None),
    }
    return [act for act in ACTS.values() if not idle.get(act, False)]
