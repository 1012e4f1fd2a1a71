"""Time and what is done from time to time: clocks that are read in turn where the process is halted
in between, slow passes, updates of the time zone database, and the count of a leader's rows."""

from __future__ import annotations

import threading
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron import Scheduler, signals
from django_declarative_cron.core.events import PersistenceFailed
from django_declarative_cron.cron import parse, timeline
from django_declarative_cron.cron.zones import reload_zones
from django_declarative_cron.runtime import housekeeping
from django_declarative_cron.runtime.clock import Moment, SystemClock, moment
from django_declarative_cron.runtime.loop import SLOW, Loop
from django_declarative_cron.store.guard import Member
from django_declarative_cron.testing import ManualClock, Simulation

from .conftest import Heard, nothing, registrations

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
HALT = timedelta(seconds=30)
READINGS = range(12)
"""So many looks at either clock are more than a pass has until its first statement."""


class Halting(ManualClock):
    """A clock of a process that is halted right after one of its looks at either clock."""

    looks_until_halt = -1

    def now(self) -> datetime:
        return self._then_halt(super().now())

    def monotonic(self) -> float:
        return self._then_halt(super().monotonic())

    def _then_halt(self, seen: Any) -> Any:
        if self.looks_until_halt == 0:
            self.advance(self._now + HALT)
        self.looks_until_halt -= 1
        return seen


@pytest.fixture
def clock() -> Halting:
    return Halting(NOON)


@pytest.fixture
def halting(transactional_db: None, clock: Halting) -> Scheduler:
    """Give a scheduler on that clock that has passed once."""
    made = Scheduler(clock=clock, background=False)
    made.initialize(registrations(t=nothing))
    made.tick()
    return made


@pytest.mark.parametrize("looks", READINGS)
def test_both_clocks_are_read_at_once_wherever_the_process_is_halted(
    clock: Halting, looks: int
) -> None:
    clock.looks_until_halt = looks
    read = moment(clock)
    assert read == Moment((read.at - NOON).total_seconds(), read.at)


def test_a_process_that_is_halted_all_the_time_reads_something() -> None:
    class Slow(Halting):
        def _then_halt(self, seen: Any) -> Any:
            self.advance(self._now + HALT)
            return seen

    assert moment(Slow(NOON)).at > NOON


@pytest.mark.parametrize("looks", READINGS)
def test_a_halt_is_no_leap_of_the_clock(
    halting: Scheduler, clock: Halting, heard: Heard, looks: int
) -> None:
    clock.looks_until_halt = looks
    for _ in range(3):
        halting.tick()
        clock.advance(clock._now + timedelta(seconds=1))
    assert clock.looks_until_halt < 0
    assert heard.of("ClockStepped") == []


def test_a_leap_is_told_though_the_process_was_halted_as_well(
    halting: Scheduler, clock: Halting, heard: Heard
) -> None:
    clock.leap(NOON - timedelta(minutes=2))
    clock.looks_until_halt = 0
    halting.tick()
    halting.tick()
    assert [event.seconds for event in heard.of("ClockStepped")] == [-120.0]


def test_a_set_that_is_activated_again_for_long_is_no_leap_and_the_pass_has_its_own_time(
    halting: Scheduler, clock: Halting, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, evaluated = iter([True, False, False]), list[datetime]()
    poll = halting._engine._poll

    def take_long(*_: object) -> bool:
        clock.advance(clock._now + HALT)
        return next(asked)

    def note(view: Any, now: datetime) -> Any:
        evaluated.append(now)
        return poll(view, now)

    monkeypatch.setattr(halting, "_activate_again", take_long)
    monkeypatch.setattr(halting._engine, "_poll", note)
    halting.tick()
    halting.tick()
    assert evaluated[:2] == [NOON, NOON + HALT]
    assert heard.of("ClockStepped") == []


# --- a pass of the loop that takes long: told with its length, and nothing is lost by it ---


class Leaping(SystemClock):
    """A clock on which nothing takes any time but what a test says."""

    second = 0.0

    def monotonic(self) -> float:
        return self.second


def _one_pass(seconds: float, *, refused: bool = False) -> None:
    """Go once through the loop, in this thread."""
    clock = Leaping()

    def tick() -> None:
        # First: whatever goes wrong after it, there is no second pass.
        loop._is_stopped = True
        clock.second += seconds
        if refused:
            at = clock.now()
            signals.publish([PersistenceFailed(at=at, doing="evaluating", error="Error: gone")])

    loop = Loop(clock, tick, threading.Event(), lambda: 0.0)
    loop._run()


def test_p70_a_pass_that_takes_long_is_told_with_its_length(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _one_pass(90)
    (told,) = caplog.records
    assert told.levelname == "WARNING"
    assert told.getMessage().startswith("A tick of the scheduler took 90.0 s: ")


def test_a_pass_of_usual_length_is_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    _one_pass(SLOW - 0.1)
    assert caplog.records == []


def test_a_refusal_that_took_long_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    _one_pass(timedelta(minutes=1).total_seconds(), refused=True)
    assert [getattr(record, "event", "") for record in caplog.records] == ["PersistenceFailed"]


# --- updates of the time zone database ---

AT_NOON = "0 12 * * *"
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
    assert parse(AT_NOON).next_after(instant, zone) == datetime(2024, 1, 1, 3, tzinfo=UTC)
    _install(installed, "America/New_York", "2024b")
    reload_zones()
    assert parse(AT_NOON).next_after(instant, zone) == datetime(2024, 1, 1, 17, tzinfo=UTC)


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
        {"name": name, "cron": AT_NOON, "timezone": zone, "callback": sim.job()}
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
    entry: dict[str, Any] = {"name": "t", "cron": AT_NOON, "timezone": ZONE, "callback": job}
    sim.initialize([entry])
    assert sim.task("t").next_run_at == datetime(2024, 1, 1, 3, tzinfo=UTC)
    sim.advance_to("2024-01-01T01:00:00Z")
    _install(installed, "America/New_York", "2024b-2")
    sim.advance_to("2024-01-01T01:30:00Z", at_least_every=timedelta(minutes=5))
    assert sim.task("t").next_run_at == datetime(2024, 1, 1, 17, tzinfo=UTC)
    sim.advance_to("2024-01-01T18:00:00Z")
    assert sim.starts("t") == [datetime(2024, 1, 1, 17, tzinfo=UTC)]


# --- the count of a leader's rows ---

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
    assert not audit.finds_loss(MEMBER, 3, NOON, NOON)
    now = NOON + timedelta(seconds=passed)
    following = None if until_next is None else now + timedelta(seconds=until_next)
    assert not audit.finds_loss(MEMBER, 4, now, following)
    assert counted == ([3, 4] if counts else [3])
