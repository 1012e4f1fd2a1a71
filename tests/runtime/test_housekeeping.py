"""Updates of the time zone database, and the count of a leader's rows."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.cron import parse, timeline
from django_declarative_cron.cron.zones import reload_zones
from django_declarative_cron.runtime import housekeeping
from django_declarative_cron.store.guard import Member
from django_declarative_cron.testing import Simulation

NOON = "0 12 * * *"
ZONE = "Europe/Berlin"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let a directory be where the database is installed, with one zone of old rules."""
    before = zoneinfo.TZPATH
    place = tmp_path / "zoneinfo"
    (place / "Europe").mkdir(parents=True)
    _install(place, "Asia/Tokyo", "2024a")
    zoneinfo.reset_tzpath([str(place)])
    reload_zones()
    yield place
    zoneinfo.reset_tzpath(before)
    reload_zones()
    timeline._RELOADED.clear()


def _install(place: Path, rules: str, release: str) -> None:
    """Give the zone the rules of another one, as a new release would."""
    found = next(
        path / rules
        for path in (Path("/usr/share/zoneinfo"), *_packaged())
        if (path / rules).exists()
    )
    (place / ZONE).write_bytes(found.read_bytes())
    _release(place, release)


def _release(place: Path, release: str) -> None:
    (place / "tzdata.zi").write_text(f"# version {release}\n" + "#" * len(release))


def _packaged() -> list[Path]:
    try:
        import tzdata as package
    except ImportError:
        return []
    return [Path(str(package.__path__[0])) / "zoneinfo"]


@pytest.mark.requirement("002 CRON-S03")
def test_a_zone_object_of_before_follows_the_new_rules(installed: Path) -> None:
    zone = ZoneInfo(ZONE)
    instant = datetime(2024, 1, 1, tzinfo=UTC)
    assert parse(NOON).next_after(instant, zone) == datetime(2024, 1, 1, 3, tzinfo=UTC)
    _install(installed, "America/New_York", "2024b")
    reload_zones()
    assert parse(NOON).next_after(instant, zone) == datetime(2024, 1, 1, 17, tzinfo=UTC)


def test_an_update_is_seen_by_a_look_at_the_files(installed: Path) -> None:
    before = housekeeping.installed()
    assert before == housekeeping.installed()
    _install(installed, "Asia/Tokyo", "2024b-1")
    assert housekeeping.installed() != before


@pytest.mark.django_db
def test_a_scheduler_outlives_the_removal_of_a_zone(installed: Path) -> None:
    gone = "Europe/Gone"
    (installed / ZONE).rename(installed / gone)
    _release(installed, "2024a-1")
    reload_zones()
    sim = Simulation("2024-01-01T00:00:00Z")
    tasks: list[dict[str, Any]] = [
        {"name": name, "cron": NOON, "timezone": zone, "callback": sim.job()}
        for name, zone in (("gone", gone), ("other", "UTC"))
    ]
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T01:00:00Z")
    (installed / gone).unlink()
    _release(installed, "2024b-3")
    sim.advance_to("2024-01-01T13:00:00Z", at_least_every=timedelta(minutes=5))
    assert sim.starts("other") == [datetime(2024, 1, 1, 12, tzinfo=UTC)]
    assert sim.starts("gone") == [datetime(2024, 1, 1, 3, tzinfo=UTC)]


@pytest.mark.requirement("002 CRON-S03")
@pytest.mark.django_db
def test_a_scheduler_follows_an_update_while_it_runs(installed: Path) -> None:
    sim = Simulation("2024-01-01T00:00:00Z")
    job = sim.job()
    entry: dict[str, Any] = {"name": "t", "cron": NOON, "timezone": ZONE, "callback": job}
    sim.initialize([entry])
    assert sim.task("t").next_run_at == datetime(2024, 1, 1, 3, tzinfo=UTC)
    sim.advance_to("2024-01-01T01:00:00Z")
    _install(installed, "America/New_York", "2024b-2")
    sim.advance_to("2024-01-01T01:30:00Z", at_least_every=timedelta(minutes=5))
    assert sim.task("t").next_run_at == datetime(2024, 1, 1, 17, tzinfo=UTC)
    sim.advance_to("2024-01-01T18:00:00Z")
    assert sim.starts("t") == [datetime(2024, 1, 1, 17, tzinfo=UTC)]


NOW = datetime(2026, 1, 1, tzinfo=UTC)
MEMBER = cast(Member, None)


@pytest.mark.parametrize(
    ("passed", "until_next", "counts"),
    [
        (59, None, False),
        (60, None, True),
        (60, 3600, True),
        (60, 2, True),
        (60, 1.9, False),
        (69, 0.1, False),
        (70, 0.1, True),
        (-60, 3600, True),
    ],
)
def test_a_start_that_is_near_is_not_delayed_by_counting(
    monkeypatch: pytest.MonkeyPatch, passed: float, until_next: float | None, counts: bool
) -> None:
    counted: list[int] = []
    monkeypatch.setattr(housekeeping, "is_whole", lambda member, tasks: not counted.append(tasks))
    audit = housekeeping.RowAudit()
    assert not audit.finds_loss(MEMBER, 3, NOW, NOW)
    now = NOW + timedelta(seconds=passed)
    following = None if until_next is None else now + timedelta(seconds=until_next)
    assert not audit.finds_loss(MEMBER, 4, now, following)
    assert counted == ([3, 4] if counts else [3])
