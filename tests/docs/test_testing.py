"""What the page about testing shows is what the kit says."""

from __future__ import annotations

from datetime import date, timedelta
from types import ModuleType
from typing import Any

import pytest

from django_declarative_cron import conf, testing
from django_declarative_cron.core.schedule_snapshot import yearbook
from django_declarative_cron.testing import CronTestMixin, assert_fires

from .pages import DOCS

PAGE = DOCS["testing.md"]


def test_every_public_name_is_on_the_page() -> None:
    # Those that nobody has to name: what simulations are made of, and give.
    parts = {"Instant", "Job", "ManualClock", "Record", "SimulatedCrash", "SimulatedFailure"}
    names = {name for name in vars(CronTestMixin) if not name.startswith("_")}
    assert [each for each in {*testing.__all__, *names} - parts if each not in PAGE.text] == []
    reference = DOCS["reference.md"].text
    public = {*testing.__all__} - parts
    assert [name for name in public if f"{testing.__name__}.{name}\n" not in reference] == []


def test_a_failure_reads_as_shown(modules: dict[str, ModuleType], settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    digests = ("send-digests", "0 7 * * 1-5", "shop.tasks.send_digests", timedelta(minutes=10))
    with pytest.raises(AssertionError) as caught:
        assert_fires(
            "send-digests",
            between=("2027-01-08", "2027-01-12"),
            at=["2027-01-08 07:00", "2027-01-09 07:00"],
            tasks=[digests],
        )
    (shown,) = [block.text for block in PAGE.blocks if "missing:" in block.text]
    assert shown == f"{caught.value}\n"


def test_a_snapshot_reads_as_shown(modules: dict[str, ModuleType]) -> None:
    entry = {
        "name": "close-quarter",
        "cron": "30 2 28 */3 *",
        "timezone": "Europe/Berlin",
        "callback": "shop.tasks.bill",
    }
    (shown,) = [block.text for block in PAGE.blocks if block.marker == "snapshot"]
    assert shown == yearbook(conf.declarations([entry]), date(2027, 1, 1))
