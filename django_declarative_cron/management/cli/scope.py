"""Which rows a subcommand is about, and which tasks it may name."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.core.management.base import CommandError
from django.db import Error as DatabaseError
from django.db.models import QuerySet

from ... import conf
from ...core.declarations.declaration import Declaration
from ...core.declarations.problems import Problem
from ...core.declarations.values import flaw_of_text, nearest
from ...exceptions import DeclarativeCronError
from ...formatting import format_instant
from ...models import ScheduledTask, SchedulerState
from ...store import database
from ...store.database import flaw_of_tables
from ...store.registration_sets import Removal, removal_of
from ..ready import require_tables

NOT_REGISTERED = (
    "Start a scheduler with `python manage.py runscheduler`: it registers what is declared."
)


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows of one deployment.

    Args:
        using: database alias.
        deployment: its name.
    """

    using: str
    deployment: str

    @classmethod
    def current(cls) -> Scope:
        """Return the rows of this project's deployment.

        Raises:
            CommandError: before ``migrate``, with exit code 2.
        """
        using = database.alias()
        require_tables(using)
        return cls(using, conf.options().DEPLOYMENT)

    @property
    def tasks(self) -> QuerySet[ScheduledTask]:
        """Return the rows of its tasks."""
        tasks = ScheduledTask.objects.using(self.using)
        return tasks.filter(scheduler__deployment=self.deployment)

    def initialized_at(self) -> datetime | None:
        """Return when a scheduler last made a registration set the active one."""
        states = SchedulerState.objects.using(self.using).filter(deployment=self.deployment)
        return states.values_list("initialized_at", flat=True).first()

    def require_registered(self, names: Iterable[str]) -> None:
        """Refuse names that have no row.

        Raises:
            CommandError: with exit code 1 for a task that is declared and not yet registered,
                and for one that was removed; 2 for a name nobody knows.
        """
        # Compared here, not by the database: what was typed may be no text that it stores.
        known = {name or "" for name in self.tasks.values_list("name", flat=True)}
        for name in names:
            if name not in known:
                raise self._removed(name) or unknown(name, known)

    def removal_of(self, name: str) -> Removal | None:
        """Return the removal of a task, ``None`` for one that is registered or never ran."""
        if flaw_of_text(name) is not None or name in _declared_names():
            return None
        return removal_of(self.using, self.deployment, name)

    def _removed(self, name: str) -> CommandError | None:
        removal = self.removal_of(name)
        if removal is None:
            return None
        since = (
            "" if removal.at is None else f" at {format_instant(removal.at, conf.project_zone())}"
        )
        hint = f"`python manage.py cron history {shlex.quote(name)}` shows its runs."
        return CommandError(f"The task {name!r} was removed{since}. {hint}", returncode=1)


def tasks_if_any(*names: str) -> list[ScheduledTask]:
    """Return the rows of this project's tasks, none where no database answers for them."""
    try:
        using = database.alias()
        if flaw_of_tables(using) is not None:
            return []
        tasks = Scope.current().tasks
        return list(tasks.filter(name__in=names) if names else tasks)
    except DatabaseError:
        return []


def declared() -> list[Declaration]:
    """Return what the settings declare.

    Raises:
        CommandError: for a set with a mistake, with all mistakes and exit code 2.
    """
    given = conf.registrations()
    try:
        return conf.declarations(given)
    except DeclarativeCronError as error:
        found = [shown(problem) for problem in conf.problems(given) if problem.check.level == "E"]
        mistakes = found or [error.message]
        raise CommandError(
            "\n".join(["The settings are refused.", *mistakes]), returncode=2
        ) from error


def unknown(name: str, known: Iterable[str]) -> CommandError:
    """Say that a task has no row."""
    declared_names = _declared_names()
    if name in declared_names:
        text = f"The task {name!r} is declared, but no scheduler has registered it yet."
        return CommandError(f"{text} {NOT_REGISTERED}", returncode=1)
    near = nearest(name, {*known, *declared_names})
    hint = f"Did you mean {near!r}?" if near else "`python manage.py cron list` shows all names."
    return CommandError(f"No task is called {name!r}. {hint}", returncode=2)


def _declared_names() -> set[str]:
    return {each.declaration.name for each in conf.survey(conf.registrations())[0]}


def shown(problem: Problem) -> str:
    """Word a problem of the settings for a terminal."""
    stop = "" if problem.message.endswith(("?", ".", "!")) else "."
    return f"{problem.place}: {problem.message}{stop} {problem.hint}".strip()
