"""Sets too large for one row: kept in parts, shared by the sets that have them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.models import (
    RegistrationPart,
    RegistrationSet,
    ScheduledTask,
    SchedulerState,
)
from django_declarative_cron.store import registration_sets

from .conftest import Deployment
from .statements import claim

pytestmark = pytest.mark.django_db

TASKS = 40


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """Give a deployment whose set has forty tasks, where five are many."""
    monkeypatch.setattr(registration_sets, "PART", 5)
    made = Deployment(TASKS)
    made.initialize()
    return made


def _change(made: Deployment, **cron_of: str) -> None:
    for name, cron in cron_of.items():
        made.change(name, cron=cron)
    made.initialize()


def _of_newest() -> dict[str, Any]:
    newest = RegistrationSet.objects.order_by("-generation")[0]
    found = registration_sets.of_set("default", newest)
    assert len(found) == len({each["name"] for each in found})
    return {each["name"]: each for each in found}


def test_a_small_set_is_in_its_own_row() -> None:
    Deployment(3).initialize()
    assert [task["name"] for task in RegistrationSet.objects.get().tasks] == ["t0", "t1", "t2"]
    assert RegistrationPart.objects.count() == 0


def test_a_task_that_begins_anew_as_it_is_claimed_is_of_a_generation_that_comes_once() -> None:
    made = Deployment(3)
    made.initialize()
    made.owe_all()
    ScheduledTask.objects.filter(name="t1").update(cron="1 1 1 1 *")
    assert len(claim(made).claims) == 2
    newest = RegistrationSet.objects.order_by("-generation")[0]
    assert {name for name, task in _of_newest().items() if task["fresh"]} == {"t1"}
    assert SchedulerState.objects.get().generation == newest.generation == 2
    _change(made, t2="2 2 2 2 *")
    assert SchedulerState.objects.get().generation == 3


def test_a_large_set_is_kept_in_parts_and_read_as_a_whole(made: Deployment) -> None:
    row = RegistrationSet.objects.get()
    assert row.tasks == []
    assert len(row.parts) == RegistrationPart.objects.count() > 4
    found = _of_newest()
    assert found.keys() == {f"t{number}" for number in range(TASKS)}
    assert all(task["fresh"] for task in found.values())
    assert found["t7"]["cron"] == "0 0 29 2 *"


def test_the_next_set_shares_the_parts_in_which_nothing_changed(made: Deployment) -> None:
    before = set(RegistrationPart.objects.values_list("digest", flat=True))
    _change(made, t7="5 5 5 5 *")
    written = set(RegistrationPart.objects.values_list("digest", flat=True)) - before
    # The one that is fresh, and those that were with it.
    assert 1 <= len(written) <= 2
    found = _of_newest()
    assert found.keys() == {f"t{number}" for number in range(TASKS)}
    assert {name for name, task in found.items() if task["fresh"]} == {"t7"}
    assert found["t7"]["cron"] == "5 5 5 5 *"


def test_a_part_goes_with_the_last_set_that_has_it(made: Deployment) -> None:
    _change(made, t7="5 5 5 5 *")
    RegistrationSet.objects.order_by("generation")[0].delete()
    registration_sets.forget_parts(made.member)
    used = {digest for digest, _ in RegistrationSet.objects.get().parts}
    assert set(RegistrationPart.objects.values_list("digest", flat=True)) == used
    assert _of_newest().keys() == {f"t{number}" for number in range(TASKS)}


def test_a_part_that_is_lost_leaves_a_hole_that_is_seen(made: Deployment) -> None:
    row = RegistrationSet.objects.get()
    RegistrationPart.objects.filter(digest=row.parts[0][0]).delete()
    found = registration_sets.of_set("default", row)
    assert found.count(None) == 1
    assert 0 < len(found) - 1 < TASKS
    assert registration_sets.of_set("default", RegistrationSet(parts=[7, ["a"]])) == [None, None]


def test_parts_are_shared_as_they_are_stored_by_now(made: Deployment) -> None:
    if not connection.features.has_select_for_update:
        pytest.skip("a writer of this database is alone")
    with CaptureQueriesContext(connection) as asked:
        _change(made, t7="5 5 5 5 *")
    table = RegistrationPart._meta.db_table
    looks = [q["sql"] for q in asked if q["sql"].startswith("SELECT") and table in q["sql"]]
    assert len(looks) == 1
    assert looks[0].endswith("FOR UPDATE")
