"""A crontab, and the list of django-crontab that becomes one."""

from __future__ import annotations

import sys
from pathlib import Path

from django.core.management.base import CommandError

from ... import conf
from ...core.moving import crontab, django_crontab
from ...core.moving.moved import Difference, Moved, Moving
from .asked import Asked, bind

_OF_SYSTEM = ("/etc/crontab", "/etc/cron.d")


def read_crontab(asked: Asked) -> Moving:
    """Read a crontab.

    Raises:
        CommandError: there is none, with exit code 2.
    """
    if not asked.source:
        text = "Name a file, or pipe it in: `crontab -l | python manage.py cron import crontab -`."
        raise CommandError(text, returncode=2)
    with_users = asked.with_users or asked.source.startswith(_OF_SYSTEM)
    told = Difference("zone", f"its times are read in {asked.zone}; --timezone names another")
    tasks, said = crontab.moved(_text(asked.source), asked.zone, with_users=with_users)
    source = "standard input" if asked.source == "-" else asked.source
    return Moving("crontab", source, tasks, (told, *crontab.GENERAL, *said))


def _text(source: str) -> str:
    if source == "-":
        return sys.stdin.read()
    try:
        return Path(source).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        raise CommandError(f"{source!r} cannot be read: {error}", returncode=2) from error


def read_django_crontab(asked: Asked) -> Moving:
    """Read the list ``CRONJOBS``."""
    locked = bool(conf.foreign("CRONTAB_LOCK_JOBS", False))
    items = conf.foreign("CRONJOBS", ())
    whole = [each for each in items if isinstance(each, list | tuple) and len(each) > 1]
    jobs = [django_crontab.job_of(each, asked.zone, locked=locked) for each in whole]
    general = [*django_crontab.GENERAL]
    for name in ("CRONTAB_COMMAND_PREFIX", "CRONTAB_COMMAND_SUFFIX"):
        if conf.foreign(name):
            told = f"{name} ({conf.foreign(name)}) was part of every command"
            general.append(Difference("environment", told))
    strange = [each for each in items if each not in whole]
    tasks = (
        *django_crontab.moved(jobs, bind),
        *(Moved(repr(each), None).refused("it is no item of CRONJOBS") for each in strange),
    )
    return Moving("django-crontab", "CRONJOBS of the settings", tasks, tuple(general))
