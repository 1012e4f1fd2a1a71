"""A year of the schedule in a file: written when told to, compared otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time

from django_declarative_cron.testing import assert_schedule_snapshot, schedules

BASE = {"name": "bill", "timezone": "UTC", "callback": "tests.callables.jobs.send_mail"}


@pytest.fixture(autouse=True)
def _tasks(settings: Any) -> None:
    settings.SCHEDULED_TASKS = [{**BASE, "cron": "0 3 1 1 *"}]


def test_it_is_written_from_the_first_of_the_month_and_holds_later(tmp_path: Path) -> None:
    path = tmp_path / "schedule.txt"
    with freeze_time("2026-12-24T12:00Z"):
        assert_schedule_snapshot(path, rewrite=True)
    assert "# From 2026-12-01 up to 2027-12-01.\n" in path.read_text()
    assert "    2027-01  Fri 1  03:00\n" in path.read_text()
    with freeze_time("2029-06-01T12:00Z"):
        assert_schedule_snapshot(path)


def test_what_has_changed_is_shown_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "schedule.txt"
    with freeze_time("2026-12-24T12:00Z"):
        assert_schedule_snapshot(path, rewrite=True)
    with pytest.raises(AssertionError) as caught:
        assert_schedule_snapshot(path, tasks=[{**BASE, "cron": "0 3 2 1 *"}])
    assert str(caught.value).splitlines() == [
        "the schedule is not that of schedule.txt any more:",
        "--- schedule.txt",
        "+++ what is declared now",
        "-bill: 0 3 1 1 *  UTC  tests.callables.jobs.send_mail",
        "-bill: 2027-01  Fri 1  03:00",
        "+bill: 0 3 2 1 *  UTC  tests.callables.jobs.send_mail",
        "+bill: 2027-01  Sat 2  03:00",
        f"If that is meant: pytest --cron-snapshot-rewrite, or manage.py cron snapshot {path},"
        " and commit the file.",
    ]


def test_a_long_difference_is_cut(
    tmp_path: Path, still_clock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "_SHOWN_LINES", 2)
    path = tmp_path / "schedule.txt"
    assert_schedule_snapshot(path, rewrite=True)
    with pytest.raises(AssertionError, match="… and 4 more lines"):
        assert_schedule_snapshot(path, tasks=[{**BASE, "cron": "0 3 2 1 *"}])


@pytest.mark.parametrize(
    ("text", "words"), [(None, "is not there; write it with"), ("hello", "is not a snapshot")]
)
def test_a_file_that_is_none_is_a_failure_and_is_left_alone(
    tmp_path: Path, text: str | None, words: str
) -> None:
    path = tmp_path / "schedule.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(AssertionError, match=words):
        assert_schedule_snapshot(path)
    assert (path.read_text() if path.exists() else None) == text


def test_the_fixture_compares_with_a_file_beside_the_test(
    cron_snapshot: Callable[..., None],
) -> None:
    cron_snapshot("schedule.txt", tasks=[{**BASE, "cron": "0 3 1 1 *"}])
    with pytest.raises(AssertionError, match="is not there"):
        cron_snapshot("nowhere.txt")
