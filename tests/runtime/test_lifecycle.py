"""The state machine of a scheduler by itself (001 Scheduler State Model, Polling State Model)."""

from __future__ import annotations

import threading

import pytest

from django_declarative_cron.runtime.lifecycle import (
    POLLING,
    TRANSITIONS,
    BusyError,
    Lifecycle,
    Polling,
    State,
    Step,
)

from .conftest import TIMEOUT


@pytest.mark.requirement("001 Scheduler State Model/1")
def test_the_states_are_those_of_the_specification() -> None:
    assert [str(state) for state in State] == [
        "Uninitialized",
        "Initializing",
        "Running",
        "Reinitializing",
        "Stopping",
        "Stopped",
    ]
    assert [str(state) for state in Polling] == ["Inactive", "Active", "Stopping"]


SPECIFIED = [
    ("Uninitialized", "Initializing", "SchedulerInitializationStarted"),
    ("Initializing", "Running", "SchedulerInitializationCompleted"),
    ("Initializing", "Uninitialized", "SchedulerInitializationFailed"),
    ("Running", "Reinitializing", "SchedulerReinitializationStarted"),
    ("Reinitializing", "Running", "SchedulerReinitializationCompleted"),
    ("Running", "Stopping", "SchedulerStopRequested"),
    ("Stopping", "Stopped", "SchedulerStopped"),
]
OURS = [
    ("Stopped", "Initializing", "SchedulerInitializationStarted"),
    ("Reinitializing", "Running", "SchedulerInitializationFailed"),
    ("Initializing", "Stopping", "SchedulerStopRequested"),
    ("Reinitializing", "Stopping", "SchedulerStopRequested"),
]


@pytest.mark.requirement("001 Scheduler State Model/1")
def test_the_transitions_are_those_of_the_specification_and_ours() -> None:
    found = [(s, target, event.__name__) for (s, _), (target, event) in TRANSITIONS.items()]
    assert sorted(found) == sorted(SPECIFIED + OURS)


@pytest.mark.requirement("000 Polling Behavior/4")
def test_polling_moves_as_specified() -> None:
    assert {(s, target, event.__name__) for (s, target), event in POLLING.items()} == {
        ("Inactive", "Active", "PollingStarted"),
        ("Active", "Inactive", "PollingStopped"),
        ("Active", "Stopping", "PollingStopRequested"),
        ("Stopping", "Inactive", "PollingStopped"),
    }


def _names(told: list[type]) -> list[str]:
    return [event.__name__ for event in told]


def _running() -> Lifecycle:
    life = Lifecycle()
    life.begin_initialize(from_inside=False)
    life.conclude(Step.SUCCEED)
    life.give_back()
    return life


def _ask(life: Lifecycle) -> list[str]:
    with life.asking_to_stop() as told:
        return _names(told)


@pytest.mark.requirement("001 Reentrancy Protection/3")
@pytest.mark.parametrize("outcome", [Step.SUCCEED, Step.FAIL])
@pytest.mark.parametrize("life", [Lifecycle, _running], ids=["the first", "a repeated"])
def test_an_initialisation_that_a_stop_waits_for_ends_in_stopping(
    life: type[Lifecycle], outcome: Step
) -> None:
    machine = life()
    machine.begin_initialize(from_inside=False)
    before = machine.state
    assert _ask(machine)[0] == "SchedulerStopRequested"
    assert machine.state is before, "the initialisation goes on"
    assert not machine.begin_shutdown(seconds=0)
    assert machine.conclude(outcome) is TRANSITIONS[before, outcome][1]
    assert machine.state is State.STOPPING
    assert machine.poll(active=True) == []
    machine.give_back()
    assert machine.begin_shutdown(seconds=0)


def test_one_from_inside_waits_for_another_but_not_for_a_stop() -> None:
    life = _running()
    life.begin_initialize(from_inside=False)
    refused: list[str] = []

    def initialize() -> None:
        try:
            life.begin_initialize(from_inside=True)
        except BusyError as error:
            refused.append(str(error))

    waiting = threading.Thread(target=initialize)
    waiting.start()
    _ask(life)
    waiting.join(TIMEOUT)
    assert len(refused) == 1


def test_the_turn_is_had_only_where_it_is_free_and_the_scheduler_runs() -> None:
    life = _running()
    with life.turn_if_free() as first, life.turn_if_free() as second:
        assert (first, second) == (True, False)
    with life.turn_if_free() as again:
        assert again
    _ask(life)
    with life.turn_if_free() as stopping:
        assert not stopping
