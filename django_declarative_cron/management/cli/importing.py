"""``cron import``: what another scheduler was told, as entries of ``SCHEDULED_TASKS``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable

from django.core.management.base import CommandError

from ... import conf
from ...core.moving.moved import Difference, Moved, Moving
from ...core.moving.written import data, python
from ...cron import UnknownZoneError, validate_zone
from ...formatting import format_count
from ..moving import apscheduler, celery, crontabs, django_cron, django_q
from ..moving.asked import Asked
from .subcommand import Context, Options, Subcommand

READERS: dict[str, Callable[[Asked], Moving]] = {
    "celery-beat": celery.read,
    "django-q": django_q.read,
    "django-cron": django_cron.read,
    "django-crontab": crontabs.read_django_crontab,
    "apscheduler": apscheduler.read,
    "crontab": crontabs.read_crontab,
}

_PLACES = {"python": "above", "json": "beside"}
"""Where a difference is written, by format."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("rival", choices=[*READERS], metavar="SCHEDULER", help=", ".join(READERS))
    parser.add_argument(
        "source",
        nargs="?",
        default="",
        metavar="SOURCE",
        help="dotted path of an app or scheduler, or the file of a crontab (- for standard input)",
    )
    parser.add_argument(
        "--timezone",
        metavar="Z",
        help="of the machine, for crontabs; TIME_ZONE unless given",
    )
    parser.add_argument(
        "--system", action="store_true", help="each line of the crontab names a user"
    )
    parser.add_argument(
        "--keep-workers",
        action="store_true",
        help="go on sending tasks to Celery's workers instead of calling them",
    )
    parser.add_argument(
        "--unpickle",
        action="store_true",
        help="read the job store of APScheduler, whose rows are pickled and can run any code",
    )
    parser.add_argument(
        "--format",
        choices=["python", "json"],
        default="python",
        help="Python for the settings (the default), or JSON",
    )


def _answer(context: Context, options: Options) -> None:
    asked = Asked(
        options["source"],
        _zone(options["timezone"]),
        options["keep_workers"],
        options["system"],
        options["unpickle"],
    )
    moving = _judged(READERS[options["rival"]](asked))
    if options["format"] == "json":
        context.terminal.data(data(moving))
    else:
        context.terminal.lines(python(moving).rstrip())
    _tell(context, moving, _PLACES[options["format"]])


def _tell(context: Context, moving: Moving, place: str) -> None:
    left = [task for task in moving.tasks if task.entry is None]
    if not moving.tasks:
        raise CommandError(f"{moving.source}: nothing is declared there.", returncode=1)
    entries = format_count(len(moving.tasks) - len(left), "task")
    told = f"{entries} written, {len(left)} without an entry."
    context.terminal.warn(f"{told} Every difference stands {place} its task.")
    for task in left:
        context.terminal.warn(f"{task.was}: {task.differences[-1].text.rstrip('.')}.")


def _zone(name: str | None) -> str:
    if name is None:
        return conf.project_zone().key
    try:
        return validate_zone(name).key
    except UnknownZoneError as error:
        raise CommandError(str(error), returncode=2) from error


def _judged(moving: Moving) -> Moving:
    """Leave out what the settings would refuse, and say why."""
    written = [(number, task) for number, task in enumerate(moving.tasks) if task.entry is not None]
    _, problems = conf.survey([dict(task.entry or {}) for _, task in written])
    tasks = list(moving.tasks)
    refusals: dict[int, list[str]] = defaultdict(list)
    for problem in problems:
        number = written[problem.index or 0][0]
        if problem.check.level == "E":
            refusals[number].append(f"{problem.message}. {problem.hint}".strip())
    for number, reasons in refusals.items():
        tasks[number] = _refused(tasks[number], reasons)
    return Moving(moving.rival, moving.source, tuple(tasks), moving.general)


def _refused(task: Moved, reasons: list[str]) -> Moved:
    kept = f"was to be {dict(task.entry or {})}"
    return task.but(Difference("refused", kept)).refused(" ".join(reasons))


IMPORT = Subcommand(
    "import",
    "write what another scheduler was told as SCHEDULED_TASKS",
    _arguments,
    _answer,
    only_reads=True,
)
