"""The rows of this project's deployment, and the tasks that a subcommand may name."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.core.management.base import CommandError
from django.db import Error as DatabaseError
from django.db.models import QuerySet

from ... import conf
from ...core.declarations.declaration import Declaration
from ...core.declarations.problems import Problem
from ...core.declarations.values import nearest
from ...exceptions import DeclarativeCronError
from ...formatting import format_elapsed, format_instant
from ...models import ScheduledTask, SchedulerState, TaskRun
from ...runtime.clock import Clock
from ...store import database
from ...store.database import flaw_of_tables
from ...store.queries import tagged, tags_of
from ...store.registration_sets import Removal, removal_of
from ...store.status import attendance, gave_up, patience
from .subcommand import Options, wrong_use
from .terminal import Terminal

NOT_REGISTERED = (
    "Start a scheduler with `python manage.py runscheduler`: it registers what is declared."
)


def require_tables(using: str) -> None:
    """Raise ``CommandError``, with exit code 2 and the fix, if tables are missing or too old."""
    flaw = flaw_of_tables(using)
    if flaw is not None:
        raise wrong_use(flaw)


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows of one deployment in one database."""

    using: str
    deployment: str

    @classmethod
    def current(cls) -> Scope:
        """Return the rows of this project's deployment; refuse missing tables."""
        using = database.alias()
        require_tables(using)
        return cls(using, conf.options().DEPLOYMENT)

    @property
    def tasks(self) -> QuerySet[ScheduledTask]:
        tasks = ScheduledTask.objects.using(self.using)
        return tasks.filter(scheduler__deployment=self.deployment)

    @property
    def runs(self) -> QuerySet[TaskRun]:
        return TaskRun.objects.using(self.using).filter(scheduler__deployment=self.deployment)

    def initialized_at(self) -> datetime | None:
        """Return when a registration set last became the active one."""
        states = SchedulerState.objects.using(self.using).filter(deployment=self.deployment)
        return states.values_list("initialized_at", flat=True).first()

    def absence(self, clock: Clock) -> str:
        """Return the warning that no scheduler starts runs, empty where one is alive."""
        found = attendance(self.using, self.deployment, clock.database_time())
        if found is not None and found.heard(patience(conf.options().LEASE)):
            return ""
        last = None if found is None else found.last
        heard = " (no heartbeat so far)"
        if found is not None and last is not None:
            age = format_elapsed(found.age(last), units=1)
            heard = "" if gave_up(last) else f" (last heartbeat {age} ago)"
        return f"No scheduler is running{heard}: start `python manage.py runscheduler`."

    def require_registered(self, names: Iterable[str]) -> None:
        """Refuse names without a row; a task that is declared or was removed is no wrong use."""
        # Compared here, because some databases do not distinguish small letters from capitals.
        known = {name or "" for name in self.tasks.values_list("name", flat=True)}
        for name in names:
            if name not in known:
                raise self._removed(name) or unknown(name, known)

    def unknown_tag(self, tag: str) -> CommandError:
        """Return the error for a tag that no task has."""
        known = sorted({each for task in self.tasks for each in tags_of(task)})
        near = nearest(tag, known)
        hint = f"Did you mean {near!r}?" if near else f"Tags in use: {', '.join(known) or 'none'}."
        return CommandError(f"No task has the tag {tag!r}. {hint}")

    def removal_of(self, name: str) -> Removal | None:
        """Return the removal of a task, ``None`` for one that is registered or never ran."""
        if name in _declared_names():
            return None
        return removal_of(self.using, self.deployment, name)

    def _removed(self, name: str) -> CommandError | None:
        removal = self.removal_of(name)
        if removal is None:
            return None
        since = ""
        if removal.at is not None:
            since = f" at {format_instant(removal.at, conf.project_zone())}"
        hint = f"`python manage.py cron history {shlex.quote(name)}` shows its runs."
        return CommandError(f"The task {name!r} was removed{since}. {hint}")


def warn_of_absence(terminal: Terminal, absence: str) -> None:
    """Warn before all else, so that the times below are read as plans, not as promises."""
    if absence:
        terminal.remark(absence, "WARNING")


def add_selection(parser: ArgumentParser) -> None:
    """Add arguments to select named tasks, those of a tag, or all."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("names", nargs="*", default=[], metavar="NAME", help="names of tasks")
    group.add_argument("--all", action="store_true", help="every task")
    group.add_argument("--tag", metavar="TAG", help="every task with this tag")


def selected(scope: Scope, options: Options) -> list[str]:
    """Return the names of the tasks to act on; refuse unknown names, and a tag of no task."""
    if options["names"]:
        names = list(dict.fromkeys(options["names"]))
        scope.require_registered(names)
        return names
    tag = options["tag"]
    tasks = scope.tasks if tag is None else tagged(scope.tasks, tag)
    found = [name or "" for name in tasks.order_by("name").values_list("name", flat=True)]
    if not found and tag is not None:
        raise scope.unknown_tag(tag)
    if not found:
        raise CommandError(f"No task is registered. {NOT_REGISTERED}")
    return found


def tasks_if_any(*names: str) -> list[ScheduledTask]:
    """Return rows of tasks, or none if the database is unavailable."""
    try:
        using = database.alias()
        if flaw_of_tables(using) is not None:
            return []
        tasks = Scope.current().tasks
        return list(tasks.filter(name__in=names) if names else tasks)
    except DatabaseError:
        return []


def declared() -> list[Declaration]:
    """Return the declarations of the settings; refuse settings with all their mistakes."""
    given = conf.registrations()
    try:
        return conf.declarations(given)
    except DeclarativeCronError as error:
        found = [worded(problem) for problem in conf.problems(given) if problem.check.level == "E"]
        mistakes = found or [error.message]
        raise wrong_use("\n".join(["The settings are refused.", *mistakes])) from error


def unknown(name: str, known: Iterable[str]) -> CommandError:
    """Return the error for a task without a row."""
    declared_names = _declared_names()
    if name in declared_names:
        text = f"The task {name!r} is declared, but no scheduler has registered it yet."
        return CommandError(f"{text} {NOT_REGISTERED}")
    near = nearest(name, {*known, *declared_names})
    hint = f"Did you mean {near!r}?" if near else "`python manage.py cron list` shows all names."
    return wrong_use(f"No task is called {name!r}. {hint}")


def _declared_names() -> set[str]:
    return {each.declaration.name for each in conf.survey(conf.registrations())[0]}


def worded(problem: Problem) -> str:
    """Return a problem of the settings in one line."""
    stop = "" if problem.message.endswith(("?", ".", "!")) else "."
    return f"{problem.place}: {problem.message}{stop} {problem.hint}".strip()
