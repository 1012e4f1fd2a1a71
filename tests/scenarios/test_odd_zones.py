"""Zones with odd offsets and changes: a day is scheduled once in each, whatever its clocks do."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.testing import Simulation
from django_declarative_cron.theory import check

from .conftest import Started

ODD = {
    "Africa/Casablanca": "2026-02-14",  # It is behind itself in Ramadan.
    "Africa/El_Aaiun": "2026-03-21",
    "America/Nuuk": "2026-03-28",  # Its clocks change on the evening before.
    "America/St_Johns": "2026-03-07",
    "America/Caracas": "2016-04-30",
    "Antarctica/Troll": "2026-03-28",  # Its clocks change by two hours.
    "Asia/Gaza": "2026-03-27",
    "Asia/Kathmandu": "2026-03-28",
    "Asia/Pyongyang": "2015-08-14",
    "Asia/Tehran": "2022-03-21",  # A day began at one o'clock.
    "Australia/Lord_Howe": "2026-04-04",  # Its clocks change by half an hour.
    "Etc/GMT+12": "2026-03-28",
    "Europe/Dublin": "2026-03-28",  # Its winter is the time that is changed.
    "Pacific/Apia": "2011-12-29",  # It has no 30 December 2011.
    "Pacific/Chatham": "2026-04-04",
    "Pacific/Kiritimati": "1994-12-30",
}


@pytest.mark.parametrize("zone", ODD)
def test_an_odd_zone_has_a_run_each_local_day(simulation: Started, zone: str) -> None:
    begin = datetime.fromisoformat(ODD[zone]).replace(tzinfo=ZoneInfo(zone))
    sim: Simulation = simulation(begin.isoformat())
    entry = {"name": "daily", "cron": "17 4 * * *", "timezone": zone, "callback": sim.job()}
    sim.initialize([entry])
    sim.advance_to(begin + timedelta(days=4), timedelta(hours=6))
    starts = [at.astimezone(begin.tzinfo) for at in sim.starts("daily")]
    assert {(at.hour, at.minute) for at in starts} == {(4, 17)}
    days = [at.date() for at in starts]
    assert days == sorted(set(days))
    assert len(days) == (3 if zone in ("Pacific/Apia", "Pacific/Kiritimati") else 4)
    assert check(sim.trace()) == []
