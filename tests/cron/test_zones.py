"""Which zone names are taken, and that no change of a zone's offset is overlooked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest

from django_declarative_cron.cron import UnknownZoneError, next_transitions, validate_zone
from django_declarative_cron.cron.timeline import PROBE_STEP
from django_declarative_cron.cron.zones import zone_names

from ..effort import IS_COMPLETE
from .oracle import at
from .tzif import Change, changes, zones_to_prove

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.requirement("002 CRON-13")
@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "Etc/GMT+5", "US/Eastern"])
def test_names_of_the_database_are_taken(name: str) -> None:
    assert validate_zone(name).key == name


@pytest.mark.requirement("002 CRON-14")
@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("Africa/blantyre", "Africa/Blantyre"),
        ("Europ/Berlin", "Europe/Berlin"),
        ("America/New York", "America/New_York"),
        ("berlin", "Europe/Berlin"),
        ("posix/Europe/Berlin", "Europe/Berlin"),
        ("right/Europe/Berlin", "Europe/Berlin"),
        (" Europe/Berlin", "Europe/Berlin"),
        ("GMT", "Etc/GMT"),
        ("EST", "America/New_York"),
        ("UTC+5", "Etc/GMT-5"),
        ("+02:00", "Etc/GMT-2"),
        ("-0800", "Etc/GMT+8"),
        ("+05:30", "Asia/Kolkata"),
        ("UTC+99", "UTC"),
        ("utc", "UTC"),
        ("localtime", "UTC"),
        ("", "UTC"),
        ("Europe/Berlin\x00", "Europe/Berlin"),
        ("../../etc/hostname", "UTC"),
        ("x" * 100_000, "UTC"),
        (None, "UTC"),
        (["UTC"], "UTC"),
    ],
)
def test_anything_else_is_refused_with_the_nearest_name(name: Any, suggestion: str) -> None:
    with pytest.raises(UnknownZoneError) as caught:
        validate_zone(name)
    assert caught.value.suggestion == suggestion
    assert suggestion in zone_names()
    assert f'"{suggestion}"' in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.requirement("003 Input Validation/2")
def test_a_foreign_name_never_becomes_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    zone_names()

    def touch(*arguments: object, **options: object) -> None:
        raise AssertionError("the file system was asked")

    monkeypatch.setattr("builtins.open", touch)
    monkeypatch.setattr(Path, "open", touch)
    with pytest.raises(UnknownZoneError):
        validate_zone("../../../../etc/passwd")


def test_the_names_can_be_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            "django_declarative_cron.cron.zones.available_timezones", lambda: {"Moon/Tranquility"}
        )
        assert "Moon/Tranquility" not in zone_names()
        zone_names.cache_clear()
        assert zone_names() == {"Moon/Tranquility"}
    zone_names.cache_clear()
    assert "Europe/Berlin" in zone_names()


def stated(key: str, start: datetime, end: datetime) -> list[Change]:
    low, high = (start - EPOCH).total_seconds(), (end - EPOCH).total_seconds()
    return [change for change in changes(key) if low < change.second <= high]


def found(key: str, start: datetime, end: datetime) -> list[Change]:
    # A slim file ends where its rule begins to hold.
    end = min(
        end, EPOCH + timedelta(seconds=max((each.second for each in changes(key)), default=0))
    )
    return [
        Change(
            int((transition.instant - EPOCH).total_seconds()),
            int(transition.before.total_seconds()),
            int(transition.after.total_seconds()),
        )
        for transition in next_transitions(ZoneInfo(key), start, end)
    ]


@pytest.mark.parametrize(
    ("key", "years"),
    [
        pytest.param("Africa/Casablanca", (2015, 2036), id="back for Ramadan and forth again"),
        pytest.param("Africa/Monrovia", (1880, 1975), id="an offset with seconds until 1972"),
        pytest.param("America/New_York", (1965, 2036), id="New York"),
        pytest.param("America/Recife", (1998, 2004), id="a summer time of one week"),
        pytest.param("Asia/Manila", (1840, 1950), id="a day left out in 1844"),
        pytest.param("Australia/Lord_Howe", (1980, 2036), id="half an hour"),
        pytest.param("Europe/Amsterdam", (1910, 1950), id="twenty minutes and seconds"),
        pytest.param("Europe/Dublin", (1960, 1985), id="winter time is the exception"),
        pytest.param("Pacific/Apia", (2005, 2025), id="a day left out in 2011"),
        pytest.param("Pacific/Kwajalein", (1965, 1995), id="across the date line"),
    ],
)
def test_transitions_are_those_of_the_zone_s_file(key: str, years: tuple[int, int]) -> None:
    first, last = (datetime(year, 1, 1, tzinfo=UTC) for year in years)
    assert stated(key, first, last)
    assert found(key, first, last) == stated(key, first, last)


@pytest.mark.slow
def test_transitions_are_those_of_the_file_in_every_zone() -> None:
    window = at("1840-01-01" if IS_COMPLETE else "2015-01-01"), at("2036-12-31")
    wrong = [key for key in zones_to_prove() if found(key, *window) != stated(key, *window)]
    assert wrong == []


def test_no_two_transitions_of_any_zone_are_closer_than_the_probes() -> None:
    distances = [
        later.second - earlier.second
        for key in available_timezones()
        for earlier, later in pairwise(changes(key))
    ]
    assert min(distances) > PROBE_STEP


def test_transitions_of_the_far_future_follow_the_rule() -> None:
    window = at("2100-01-01"), at("2101-01-01")
    instants = [each.instant for each in next_transitions(ZoneInfo("Europe/Berlin"), *window)]
    assert instants == [at("2100-03-28T01:00"), at("2100-10-31T01:00")]


def test_the_window_of_transitions_leaves_its_start_out_and_takes_its_end_in() -> None:
    zone, change = ZoneInfo("America/New_York"), at("2024-03-10T07:00")
    second = timedelta(seconds=1)
    assert [each.instant for each in next_transitions(zone, change - second, change)] == [change]
    assert list(next_transitions(zone, change, change + second)) == []


def test_a_zone_without_changes_has_no_transitions() -> None:
    assert list(next_transitions(ZoneInfo("UTC"), at("1970-01-01"), at("2030-01-01"))) == []
