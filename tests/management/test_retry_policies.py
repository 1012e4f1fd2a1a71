"""What the commands say of tasks whose retries follow a policy."""

from __future__ import annotations

from typing import Any

import pytest

from django_declarative_cron.testing import Simulation

from .conftest import Cron

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]

POLICY = {"max_attempts": 3, "initial_interval": "PT1M", "jitter": False}


def failing(sim: Simulation) -> None:
    entry: dict[str, Any] = {"name": "t", "cron": "0 * * * *", "callback": sim.job(["fail"])}
    sim.initialize([{**entry, "options": {"retry": POLICY}}])


def test_the_policy_and_the_attempt_to_come_are_shown(cron: Cron) -> None:
    sim = Simulation("2024-01-01T10:00:00Z")
    failing(sim)
    text = "\n".join(cron("show", "t").lines)
    assert "3 attempts, PT1M, ×2 each, PT5M at most" in text
    assert "next attempt  2 of 3" in text


def test_show_says_where_a_run_takes_place_and_what_ends_it(cron: Cron) -> None:
    sim = Simulation("2024-01-01T10:00:00Z")
    entry: dict[str, Any] = {"name": "t", "cron": "0 * * * *", "callback": sim.job([])}
    sim.initialize([{**entry, "runner": "thread", "atomic": True, "options": {"timeout": 90}}])
    facts = [" ".join(line.split()) for line in cron("show", "t").lines]
    assert "runner thread, in one transaction" in facts
    assert "timeout 1 min 30 s" in facts
    assert "overlap skip" in facts


def test_history_counts_attempts_and_says_why_nothing_follows(cron: Cron) -> None:
    sim = Simulation("2024-01-01T10:00:00Z")
    failing(sim)
    sim.advance_to("2024-01-01T10:30:00Z")
    text = "\n".join(cron("history", "t").lines)
    assert "retry, attempt 2 of 3" in text
    assert "retry, attempt 3 of 3" in text
    assert "given up: attempts" in text
