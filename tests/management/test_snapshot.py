"""``cron snapshot``: a year of the schedule in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django_declarative_cron.testing import ManualClock

from ..timezones import PROJECT
from .conftest import Cron

Declare = Callable[..., list[Any]]


def test_it_is_written_and_compared(
    cron: Cron, declare: Declare, at_start: ManualClock, tmp_path: Path
) -> None:
    path = tmp_path / "schedule.txt"
    declare(yearly="0 3 2 1 *")
    answer = cron("snapshot", str(path), clock=at_start)
    assert answer.out == f"{path} has the runs of every task in the year from 2024-01-01 on.\n"
    assert "    2024-01  Tue 2  03:00\n" in path.read_text()
    assert cron("snapshot", str(path), "--check").out == f"The schedule is as in {path}.\n"
    declare(yearly="0 4 2 1 *")
    answer = cron("snapshot", str(path), "--check")
    assert answer.code == 1
    hint = f"`python manage.py cron snapshot {path}` writes it anew."
    assert answer.err == f"The schedule differs from {path}. {hint}"
    assert answer.lines[2:] == [
        f"-yearly: 0 3 2 1 *  {PROJECT}  tests.management.callbacks.nothing",
        "-yearly: 2024-01  Tue 2  03:00",
        f"+yearly: 0 4 2 1 *  {PROJECT}  tests.management.callbacks.nothing",
        "+yearly: 2024-01  Tue 2  04:00",
    ]


def test_its_first_day_can_be_named(
    cron: Cron, declare: Declare, still_clock: None, tmp_path: Path
) -> None:
    path = tmp_path / "schedule.txt"
    declare(yearly="0 3 2 1 *")
    assert cron("snapshot", str(path), "--from", "2027-01-03").code == 0
    assert "    2028-01  Sun 2  03:00\n" in path.read_text()


def test_files_that_are_none_are_said(
    cron: Cron, declare: Declare, still_clock: None, tmp_path: Path
) -> None:
    declare(yearly="0 3 2 1 *")
    nowhere, other = tmp_path / "nowhere" / "a.txt", tmp_path / "b.txt"
    other.write_text("hello")
    for words, said in [
        ((str(nowhere),), "cannot be written"),
        ((str(nowhere), "--check"), "cannot be read"),
        ((str(other), "--check"), "is not a snapshot of a schedule."),
    ]:
        answer = cron("snapshot", *words)
        assert (answer.code, said in answer.err) == (1, True)
    assert other.read_text() == "hello"


def test_programs_are_told_what_has_changed(
    cron: Cron, declare: Declare, at_start: ManualClock, tmp_path: Path
) -> None:
    path = tmp_path / "schedule.txt"
    declare(yearly="0 3 2 1 *")
    words = (str(path), "--format", "json")
    kept = {"file": str(path), "from": "2024-01-01"}
    assert cron("snapshot", *words, clock=at_start).data == {**kept, "written": True}
    assert cron("snapshot", "--check", *words).data == {**kept, "same": True, "changes": []}
    declare(yearly="0 4 2 1 *")
    answer = cron("snapshot", "--check", *words)
    assert (answer.code, answer.data["same"]) == (1, False)
    assert answer.data["changes"][3] == "-yearly: 2024-01  Tue 2  03:00"
