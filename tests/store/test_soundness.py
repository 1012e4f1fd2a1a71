"""Expressions that were read before are not read again, and nothing else depends on that."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError

from django_declarative_cron import Scheduler, __version__, conf, signals
from django_declarative_cron.core import declarations as module
from django_declarative_cron.core.declarations import Declarations
from django_declarative_cron.exceptions import CronExpressionInvalidError
from django_declarative_cron.models import (
    RegistrationSet,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
)
from django_declarative_cron.store import guard, soundness
from django_declarative_cron.testing import ManualClock

from .statements import is_postgresql, statements

pytestmark = pytest.mark.django_db(transaction=True)

FIVE = timedelta(minutes=5)
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
SOUND = [(name, f"{place} 7 * * *", "operator.not_", FIVE) for place, name in enumerate("abc")]


class Deployed:
    """A deployment whose process is begun and stopped, and what was told meanwhile."""

    def __init__(self, name: str = "default", *, in_full: bool = False) -> None:
        self.name, self.clock, self.told = name, ManualClock(NOON), list[Any]()
        self._declare = conf.declarations if in_full else conf.registration_set
        self.read: Declarations | None = None

    def start(self, items: list[Any]) -> Scheduler:
        made = Scheduler(
            clock=self.clock,
            background=False,
            declare=self._declared,
            options=lambda: replace(conf.options(), DEPLOYMENT=self.name),
        )
        made.initialize(items)
        return made

    def once(self, items: list[Any]) -> None:
        """Begin and stop."""
        self.start(items).stop()

    def _declared(self, items: object) -> Any:
        found = self._declare(items)
        self.read = found if isinstance(found, Declarations) else None
        return found

    @property
    def state(self) -> SchedulerState:
        return SchedulerState.objects.get(deployment=self.name)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Give the texts of the expressions that are read when a set is made the active one."""
    texts: list[str] = []
    parse = module.parse
    monkeypatch.setattr(module, "parse", lambda text, d: texts.append(text) or parse(text, d))
    yield texts


def test_expressions_of_the_active_set_are_read_once(parsed: list[str]) -> None:
    deployed = Deployed()
    deployed.once(SOUND)
    assert set(parsed) == {cron for _, cron, *_ in SOUND}
    assert deployed.state.read_by == soundness.READER
    parsed.clear()
    deployed.once(SOUND)
    # Where the database takes no seal, each row is compared, and what it is compared with is read.
    assert parsed == [] if is_postgresql else [cron for _, cron, *_ in SOUND]
    assert deployed.read is not None
    assert deployed.read._in_full is None


def test_the_same_set_is_relied_on_in_a_process_that_runs_it(parsed: list[str]) -> None:
    deployed = Deployed()
    scheduler = deployed.start(SOUND)
    parsed.clear()
    scheduler.initialize(list(SOUND))
    assert deployed.read is not None
    assert deployed.read._in_full is None
    assert parsed == []
    scheduler.stop()


def test_a_reader_is_this_version_of_the_package_and_of_python() -> None:
    assert soundness.READER.split(", Python ") == [__version__, platform.python_version()]


@pytest.mark.parametrize("reader", ["", "0.0.9, Python 3.13.0", "0.1.0, Python 2.7.18"])
def test_what_another_version_has_read_is_read_again(parsed: list[str], reader: str) -> None:
    deployed = Deployed()
    deployed.once(SOUND)
    SchedulerState.objects.update(read_by=reader)
    parsed.clear()
    deployed.once(SOUND)
    assert set(parsed) == {cron for _, cron, *_ in SOUND}
    assert deployed.state.read_by == soundness.READER


def test_another_set_is_read(parsed: list[str]) -> None:
    deployed = Deployed()
    deployed.once(SOUND)
    parsed.clear()
    deployed.once([*SOUND[1:], ("d", "9 7 * * *", "operator.not_", FIVE)])
    assert {"1 7 * * *", "2 7 * * *", "9 7 * * *"} <= set(parsed)


@pytest.mark.skipif(not is_postgresql, reason="the database takes no seal")
def test_what_is_due_is_read_then(parsed: list[str]) -> None:
    deployed = Deployed()
    deployed.once(SOUND)
    parsed.clear()
    scheduler = deployed.start(SOUND)
    ScheduledTask.objects.filter(name="b").update(wake_at=NOON)
    scheduler.tick(NOON)
    scheduler.stop()
    assert parsed == ["1 7 * * *"]


@pytest.mark.skipif(not is_postgresql, reason="the database takes no seal")
def test_what_cannot_be_read_after_all_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    deployed = Deployed()
    deployed.once(SOUND)
    scheduler = deployed.start(SOUND)
    parse = module.parse
    monkeypatch.setattr(module, "parse", lambda text, d: parse(text.replace("1 7", "61 7"), d))
    ScheduledTask.objects.filter(name__in="bc").update(wake_at=NOON, boot_at=NOON)
    scheduler.tick(NOON)
    scheduler.stop()
    broken = dict(ScheduledTask.objects.values_list("name", "broken_reason"))
    assert "61" in broken.pop("b")
    assert broken == {"a": "", "c": ""}


@pytest.mark.parametrize("known", [False, True])
def test_a_set_that_cannot_be_read_is_refused_and_changes_nothing(known: bool) -> None:
    deployed = Deployed()
    if known:
        deployed.once(SOUND)
    before = _rows("default"), SchedulerInstance.objects.count()
    with pytest.raises(CronExpressionInvalidError) as refused:
        deployed.once([*SOUND, ("d", "61 7 * * *", "operator.not_", FIVE)])
    assert "registrations[3] 'd'" in refused.value.__notes__[0]
    assert (_rows("default"), SchedulerInstance.objects.count()) == before


def test_what_is_wrong_in_a_set_comes_before_what_is_wrong_with_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("the server is gone")

    monkeypatch.setattr(guard, "_lock", fail)
    with pytest.raises(CronExpressionInvalidError):
        Deployed().once([*SOUND, ("d", "61 7 * * *", "operator.not_", FIVE)])


def test_to_note_who_has_read_a_set_costs_no_statement() -> None:
    deployed = Deployed()
    deployed.once(SOUND)
    usual = len(statements(partial(deployed.start, SOUND)))
    SchedulerInstance.objects.update(stopped_at=NOON, heartbeat_at=NOON)
    SchedulerState.objects.update(leader=None, lease_expires_at=None, read_by="")
    assert len(statements(partial(deployed.start, SOUND))) == usual


# --- the quick way and the whole way ---

CRONS = [
    "0 7 * * *",
    "0  7 * * *",
    "5 7 * * *",
    "61 7 * * *",
    "0 0 30 2 *",
    "0 7 * * MON",
    "0\t7 * * *",
]
CALLBACKS = ["operator.not_", "operator.neg", "operator.nothing"]
SAID: list[dict[str, Any]] = [
    {},
    {"args": [1]},
    {"args": [True]},
    {"timezone": "Asia/Tokyo"},
    {"dialect": "posix"},
    {"spread": 60},
    {"enabled": False},
    {"kron": ""},
]


def _item(random: Random, name: str) -> Any:
    """Make an item, a sound one as a rule."""
    cron = CRONS[0 if random.random() < 0.4 else random.choices(range(7), [4, 2, 4, 1, 1, 1, 1])[0]]
    callback = random.choices(CALLBACKS, [8, 4, 1])[0]
    if random.random() < 0.7:
        return (name, cron, callback, FIVE)
    said = random.choices(SAID, [4, 2, 2, 2, 2, 1, 1, 0.3])[0]
    return {"name": name, "cron": cron, "callback": callback, **said}


def _changed(random: Random, items: list[Any]) -> list[Any]:
    """Change a list, or leave it as it is."""
    items = list(items)
    match random.randrange(6):
        case 0 | 1:
            return items
        case 2 if items:
            del items[random.randrange(len(items))]
        case 3:
            random.shuffle(items)
        case 4 if items:
            place = random.randrange(len(items))
            name = items[place]["name"] if isinstance(items[place], dict) else items[place][0]
            items[place] = _item(random, name)
        case _:
            items.append(_item(random, random.choice("abcdefgh")))
    return items


def _meddle(random: Random) -> Any:
    """Think of something that somebody writes into the rows of a deployment."""
    name, kind = random.choice("abc"), random.randrange(8)
    changes: dict[str, Any] = [
        {"cron": "5 7 * * *"},
        {"digest": "0" * 64},
        {"retry_delay": None},
        {"orphaned": True},
    ][kind % 4]
    if kind < 4:
        return lambda state: ScheduledTask.objects.filter(scheduler=state, name=name).update(
            **changes
        )
    of_state: dict[str, Any] = [{"read_by": ""}, {"digest": ""}, {"seal": 5}, {}][kind % 4]
    return lambda state: of_state and SchedulerState.objects.filter(pk=state.pk).update(**of_state)


def _rows(deployment: str) -> Any:
    """Give what is stored, but for what is another of each deployment."""
    tasks = ScheduledTask.objects.filter(scheduler__deployment=deployment).order_by("name")
    apart = {"id", "scheduler_id", "scheduler_identifier", "created_at"}
    sets = RegistrationSet.objects.filter(scheduler__deployment=deployment).order_by("generation")
    states = SchedulerState.objects.filter(deployment=deployment)
    return (
        [{k: v for k, v in row.items() if k not in apart} for row in tasks.values()],
        list(sets.values_list("generation", "tasks", "parts", "registered_at")),
        list(states.values_list("digest", "seal", "generation", "epoch", "read_by", "term")),
    )


def _comparable(event: Any) -> Any:
    said = {k: v for k, v in vars_of(event).items() if k not in ("facts", "duration")}
    return type(event).__name__, {k: v for k, v in said.items() if not _is_of_a_deployment(v)}


def vars_of(event: Any) -> dict[str, Any]:
    return {name: getattr(event, name) for name in event.__dataclass_fields__}


def _is_of_a_deployment(value: Any) -> bool:
    try:
        return bool(UUID(str(value)))
    except ValueError:
        return False


def _outcome(deployed: Deployed, items: list[Any]) -> Any:
    """Begin, look once, and stop; give all that there is to be seen of it."""
    heard: list[Any] = []

    def hear(event: Any, **_: object) -> None:
        heard.append(event)

    error = None
    for signal in signals.SIGNALS.values():
        signal.connect(hear)
    try:
        scheduler = deployed.start(items)
        scheduler.stop()
    except Exception as refused:
        error = type(refused), str(refused), getattr(refused, "__notes__", None)
    finally:
        for signal in signals.SIGNALS.values():
            signal.disconnect(hear)
    return error, [_comparable(event) for event in heard], _rows(deployed.name)


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_end_with_the_same_rows_events_and_errors(seed: int) -> None:
    random = Random(seed)
    quick, whole = Deployed("quick"), Deployed("whole", in_full=True)
    sound: list[Any] = [(name, "0 7 * * *", "operator.not_", FIVE) for name in "abc"]
    items = sound
    for _ in range(6):
        outcome = _outcome(whole, items)
        assert _outcome(quick, items) == outcome
        sound = items if outcome[0] is None else sound
        items = _changed(random, sound)
        meddle = _meddle(random)
        for each in (quick, whole):
            for state in SchedulerState.objects.filter(deployment=each.name):
                meddle(state)
