"""A year of the schedule in a file that is reviewed like code."""

from __future__ import annotations

from pathlib import Path

from .. import conf
from ..core.schedule_snapshot import difference, first_day, yearbook
from ..runtime.clock import system_clock
from .schedules import all_declared

_SHOWN = 60
HOW = "pytest --cron-snapshot-rewrite, or manage.py cron snapshot {path}"


def assert_schedule_snapshot(
    path: Path | str, *, rewrite: bool = False, tasks: object = None
) -> None:
    """Assert that a file contains the dates of every task in its year.

    Args:
        path: of the file.
        rewrite: write the file instead, starting with this month.
        tasks: replaces ``SCHEDULED_TASKS``.

    Raises:
        AssertionError: the file is missing, invalid or different; the message has the lines
            that differ.
        DeclarativeCronError: a declaration is invalid.
    """
    __tracebackhide__ = True
    file, declarations = Path(path), all_declared(tasks)
    if rewrite:
        today = system_clock.now().astimezone(conf.project_zone()).date()
        file.write_text(yearbook(declarations, today.replace(day=1)), encoding="utf-8")
        return
    how = HOW.format(path=path)
    kept = file.read_text(encoding="utf-8") if file.is_file() else None
    first = None if kept is None else first_day(kept)
    if kept is None or first is None:
        what = "is not there" if kept is None else "is no snapshot of a schedule"
        raise AssertionError(f"{path} {what}; write it with {how}")
    _compare(file, kept, yearbook(declarations, first), how)


def _compare(file: Path, kept: str, present: str, how: str) -> None:
    __tracebackhide__ = True
    if kept == present:
        return
    lines = difference(kept, present, file.name) or ["(only blank lines or line ends differ)"]
    more = [f"… and {len(lines) - _SHOWN} more lines"] if len(lines) > _SHOWN else []
    said = "\n".join([*lines[:_SHOWN], *more])
    raise AssertionError(
        f"the schedule is not that of {file.name} any more:\n{said}\n"
        f"If that is meant: {how}, and commit the file."
    )
