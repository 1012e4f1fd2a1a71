"""The mixin for ``unittest``, beside each kind of Django's test cases."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import SimpleTestCase, TestCase, override_settings

from django_declarative_cron.testing import CronTestMixin

CALLBACK = "tests.callables.jobs.send_mail"
DAILY = [("daily", "0 7 * * *", CALLBACK, timedelta(minutes=5))]


@pytest.mark.usefixtures("still_clock")
@override_settings(SCHEDULED_TASKS=DAILY, TIME_ZONE="Europe/Berlin")
class WithoutDatabase(CronTestMixin, SimpleTestCase):
    """No database is asked, which ``SimpleTestCase`` would not allow."""

    def test_the_tasks_of_overridden_settings_are_those_that_count(self) -> None:
        self.assertFires("daily", between=("2027-03-22", "2027-03-23"), at=["2027-03-22T06:00Z"])
        self.assertScheduleValid()
        with self.assertRaisesRegex(AssertionError, "missing: Mon 2027-03-22 08:00"):
            self.assertFires("daily", between=("2027-03-22", "2027-03-23"), at=["2027-03-22 08:00"])

    def test_a_snapshot_is_compared(self) -> None:
        base = {"name": "bill", "timezone": "UTC", "callback": CALLBACK}
        path = Path(__file__).with_name("schedule.txt")
        self.assertScheduleSnapshot(path, tasks=[{**base, "cron": "0 3 1 1 *"}])
        with self.assertRaisesRegex(AssertionError, "any more"):
            self.assertScheduleSnapshot(path, tasks=[])


@override_settings(SCHEDULED_TASKS=DAILY, TIME_ZONE="Europe/Berlin")
class WithDatabase(CronTestMixin, TestCase):
    """A simulation has the project's tasks and its time zone."""

    def test_a_simulation_of_the_declared_tasks(self) -> None:
        threads = threading.active_count()
        sim = self.simulate("2027-03-22T05:30Z")
        sim.advance_to("2027-03-22T06:30Z")
        self.assertEqual([f"{at:%H:%M}" for at in sim.starts("daily")], ["06:00"])
        self.assertEqual(threading.active_count(), threads)

    def test_a_simulation_of_others_elsewhere(self) -> None:
        sim = self.simulate("2027-03-22T06:30Z", tasks=DAILY, time_zone="UTC")
        sim.advance_to("2027-03-22T07:30Z")
        self.assertEqual([f"{at:%H:%M}" for at in sim.starts("daily")], ["07:00"])
