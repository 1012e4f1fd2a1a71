"""``cron import``: convert the tasks of another scheduler to ``SCHEDULED_TASKS``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Sequence

from django.core.management.base import CommandError

from ... import conf
from ...formatting import format_count
from ...importers import apscheduler, celery_beat, crontab, django_cron, django_crontab, django_q
from ...importers.result import ImportedTask, ImportResult, give_names
from ...importers.sources import Request
from .subcommand import Context, Options, Subcommand, zone_of

READERS: dict[str, Callable[[Request], ImportResult]] = {
    "celery-beat": celery_beat.read,
    "django-q": django_q.read,
    "django-cron": django_cron.read,
    "django-crontab": django_crontab.read,
    "apscheduler": apscheduler.read,
    "crontab": crontab.read,
}

_PLACES = {"python": "above", "json": "beside"}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "scheduler", choices=[*READERS], metavar="SCHEDULER", help=", ".join(READERS)
    )
    parser.add_argument(
        "source",
        nargs="?",
        default="",
        metavar="SOURCE",
        help="dotted path of an app or scheduler, or the file of a crontab (- for standard input)",
    )
    parser.add_argument(
        "--timezone", metavar="Z", help="zone of the machine, for crontabs; default TIME_ZONE"
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
    request = Request(
        options["source"],
        zone_of(options["timezone"]).key,
        options["keep_workers"],
        options["system"],
        options["unpickle"],
    )
    result = READERS[options["scheduler"]](request)
    give_names(result.tasks)
    _judge(result.tasks)
    if options["format"] == "json":
        context.terminal.data(result.as_dict())
    else:
        context.terminal.lines(result.as_python().rstrip())
    _report(context, result, _PLACES[options["format"]])


def _report(context: Context, result: ImportResult, place: str) -> None:
    left = [task for task in result.tasks if not task.entry]
    if not result.tasks:
        raise CommandError(f"{result.source}: nothing is declared there.")
    entries = format_count(len(result.tasks) - len(left), "task")
    summary = f"{entries} written, {len(left)} without an entry."
    context.terminal.warn(f"{summary} Every difference stands {place} its task.")
    for task in left:
        context.terminal.warn(f"{task.was}: {task.differences[-1].text.rstrip('.')}.")


def _judge(tasks: Sequence[ImportedTask]) -> None:
    """Refuse the entries that the settings would not accept."""
    written = [task for task in tasks if task.entry]
    refusals: dict[int, list[str]] = defaultdict(list)
    for problem in conf.problems([task.entry for task in written]):
        if problem.error:
            refusals[problem.index or 0].append(f"{problem.message}. {problem.hint}".strip())
    for number, reasons in refusals.items():
        task = written[number]
        task.differ("refused", f"was to be {task.entry}")
        task.differ("refused", " ".join(reasons))
        task.entry = {}


IMPORT = Subcommand(
    "import", "write the tasks of another scheduler as SCHEDULED_TASKS", _arguments, _answer
)
