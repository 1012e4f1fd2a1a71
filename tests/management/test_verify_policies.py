"""``cron verify`` leaves tasks with policies of their own to these, and says so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.testing import Simulation

from .conftest import Cron

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]


@pytest.mark.parametrize("policy", ["skip", "allow", "cancel_previous", "enqueue"])
def test_runs_that_wait_or_never_began_are_no_violations(cron: Cron, policy: str) -> None:
    sim = Simulation("2024-01-01T10:00:30Z")
    job = sim.job(duration=timedelta(minutes=8))
    entry = {"name": "t", "callback": job, "overlap_policy": policy}
    plain = ("u", "0 * * * *", sim.job(), timedelta(minutes=5))
    sim.initialize([{**entry, "cron": "*/5 * * * *"}, plain])
    sim.advance_to("2024-01-01T11:31:00Z")
    sim.initialize([{**entry, "cron": "*/4 * * * *"}, plain])
    sim.advance_to("2024-01-01T12:06:00Z")
    data = cron("verify", "--format", "json").data
    assert data["violations"] == []
    assert data["not_judged"]["outside_the_theory"] == ["t"]


def test_a_retry_policy_is_outside_too(cron: Cron) -> None:
    sim = Simulation("2024-01-01T10:00:30Z")
    entry = {"name": "t", "cron": "*/5 * * * *", "callback": sim.job(["fail", "fail", "ok"])}
    sim.initialize([{**entry, "overlap_policy": "coalesce"}])
    sim.advance_to("2024-01-01T10:31:00Z")
    data = cron("verify", "--format", "json").data
    assert data["violations"] == []
    assert data["not_judged"]["outside_the_theory"] == ["t"]
