"""A task that ends its process each time keeps nobody else from running (P32, P54)."""

from __future__ import annotations

from datetime import timedelta

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.testing import SimulatedCrash, Simulation

from .conftest import FIVE_MINUTES, Started, utc

HOUR = timedelta(hours=1)


def _again(sim: Simulation, registrations: list[object], seconds: int) -> None:
    """Let a supervisor start the scheduler again."""
    sim.clock.advance(sim.now + timedelta(seconds=seconds))
    sim.initialize(registrations)


def _outcomes(sim: Simulation, name: str) -> list[str]:
    return [run.outcome for run in sim.runs(name)]


def test_the_third_end_in_a_row_is_told_once_and_counted(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    ends = [SimulatedCrash()] * 5
    set_: list[object] = [("k", "0 10 * * *", sim.job([*ends, "ok"]), FIVE_MINUTES)]
    sim.initialize(set_)
    counted = []
    for _ in range(5):
        _again(sim, set_, 5)
        counted.append(sim.task("k").interruptions)
    assert counted == [1, 2, 3, 4, 0]
    assert _outcomes(sim, "k") == [*["interrupted"] * 5, "succeeded"]
    (once,) = [e for e in told if isinstance(e, events.TaskRepeatedlyInterrupted)]
    assert (once.task_name, once.interruptions) == ("k", 3)


def test_a_failure_ends_the_suspicion_too(simulation: Started) -> None:
    sim = simulation("10:00:00")
    set_: list[object] = [("k", "0 10 * * *", sim.job([*[SimulatedCrash()] * 3, "fail"]), HOUR)]
    sim.initialize(set_)
    for _ in range(3):
        _again(sim, set_, 5)
    assert (_outcomes(sim, "k")[-1], sim.task("k").interruptions) == ("failed", 0)


def _killed_four_times(sim: Simulation, duration: timedelta) -> None:
    """Let one task end its process again and again before another one is due."""
    set_: list[object] = [
        ("killer", "0 10 * * *", sim.job([*[SimulatedCrash()] * 4, "ok"]), FIVE_MINUTES),
        ("other", "1 10 * * *", sim.job(duration=duration), FIVE_MINUTES),
    ]
    sim.initialize(set_)
    for _ in range(3):
        _again(sim, set_, 1)
    assert _outcomes(sim, "killer")[:3] == ["interrupted"] * 3
    _again(sim, set_, 57)
    assert sim.now == utc("10:01:00")


def test_a_suspicious_task_starts_when_the_others_have_ended(simulation: Started) -> None:
    """Without that nobody whose run takes a while would ever get to its end."""
    sim = simulation("10:00:00")
    _killed_four_times(sim, timedelta(seconds=20))
    sim.advance_to("2024-01-01T10:01:19Z", at_least_every=timedelta(seconds=1))
    assert (_outcomes(sim, "other"), _outcomes(sim, "killer")) == (
        ["running"],
        ["interrupted"] * 4,
    )
    sim.advance_to("2024-01-01T10:01:22Z", at_least_every=timedelta(seconds=1))
    assert (_outcomes(sim, "other"), _outcomes(sim, "killer")) == (
        ["succeeded"],
        [*["interrupted"] * 4, "succeeded"],
    )


def test_a_suspicious_task_does_not_wait_for_ever(simulation: Started) -> None:
    sim = simulation("10:00:00")
    _killed_four_times(sim, HOUR)
    sim.advance_to("2024-01-01T10:02:00Z", at_least_every=timedelta(seconds=1))
    assert _outcomes(sim, "other") == ["running"]
    assert _outcomes(sim, "killer") == [*["interrupted"] * 4, "succeeded"]
    waited = (sim.starts("killer")[-1] - utc("10:01:00")).total_seconds()
    assert 30 <= waited <= 32


def test_of_several_the_least_suspicious_clears_itself_first(simulation: Started) -> None:
    sim = simulation("10:00:00")
    killer = sim.job([*[SimulatedCrash()] * 5, "ok"])
    near = sim.job(duration=timedelta(seconds=2))
    set_: list[object] = [
        ("killer", "0 10 * * *", killer, FIVE_MINUTES),
        ("near", "0 10 * * *", near, FIVE_MINUTES),
    ]
    sim.initialize(set_)
    for _ in range(2):
        _again(sim, set_, 1)
    sim.crash()
    for _ in range(2):
        _again(sim, set_, 1)
        sim.advance_to(sim.now + timedelta(seconds=4))
    assert _outcomes(sim, "near")[-1] == "succeeded"
    assert sim.task("near").interruptions == 0
    assert utc("10:00:20") > sim.now
