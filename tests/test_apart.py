"""Calendars that hang, close connections or spoil transactions harm nobody but themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test import override_settings

from django_declarative_cron import calendars
from django_declarative_cron.apart import Call, HungError
from django_declarative_cron.calendars import Calendars
from django_declarative_cron.exceptions import CalendarError
from django_declarative_cron.models import TaskRun
from django_declarative_cron.testing import Simulation

from .timeouts import TIMEOUT

DAY = date(2024, 1, 1)
SPOILS: dict[str, Callable[[], object]] = {
    "connection.close": lambda: connection.close(),
    "connections.close_all": connections.close_all,
    "set_rollback": lambda: transaction.set_rollback(True),
}


def _spoils(how: str) -> Callable[[date], bool]:
    def calendar(day: date) -> bool:
        SPOILS[how]()
        return False

    return calendar


class Hangs:
    """A calendar that answers when it is let."""

    def __init__(self) -> None:
        self.may_end, self.asked = threading.Event(), list[date]()

    def __call__(self, day: date) -> bool:
        self.asked.append(day)
        assert self.may_end.wait(TIMEOUT)
        return True


def test_one_that_hangs_is_named_and_not_asked_again_before_it_has_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hangs = Hangs()
    exclusion = Calendars({"fair": hangs}).exclusion(["fair"])
    monkeypatch.setattr(calendars, "PATIENCE", 0.01)
    with pytest.raises(CalendarError, match=r"'fair' has not answered for 2024-01-01 within"):
        exclusion.calendar_of(DAY)
    monkeypatch.setattr(calendars, "PATIENCE", TIMEOUT)
    with pytest.raises(CalendarError, match=r"'fair' has not answered yet for 2024-01-01"):
        exclusion.calendar_of(date(2024, 1, 2))
    assert hangs.asked == [DAY]
    hangs.may_end.set()
    (still,) = [each.call for each in calendars._hanging.values() if each.source is hangs]
    assert still._ended.wait(TIMEOUT)
    assert exclusion.calendar_of(date(2024, 1, 2)) == "fair"


@pytest.mark.django_db
def test_one_that_goes_on_after_nobody_waits_gets_no_hand_on_a_connection() -> None:
    may_go_on = threading.Event()

    def late() -> int:
        assert may_go_on.wait(TIMEOUT)
        return User.objects.count()

    call = Call(late)
    with pytest.raises(HungError):
        call.wait(0.01)
    User.objects.create(username="ada")
    may_go_on.set()
    assert call._ended.wait(TIMEOUT)
    assert isinstance(call._error, HungError)
    assert User.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("in_the_middle_of", ["query", "transaction"])
def test_a_connection_is_not_taken_back_in_the_middle_of(in_the_middle_of: str) -> None:
    found: list[bool] = []

    def look(execute: Any, *given: Any) -> Any:
        found.append(call._loans[0].take_back())
        return execute(*given)

    def queries() -> None:
        with connection.execute_wrapper(look):
            User.objects.count()

    def begins() -> None:
        with transaction.atomic():
            User.objects.create(username="ada")
            found.append(call._loans[0].take_back())

    call = Call(queries if in_the_middle_of == "query" else begins)
    call.wait(TIMEOUT)
    assert set(found) == {False}
    assert call._loans[0].take_back()


@pytest.mark.django_db
def test_it_sees_what_the_transaction_around_it_has_written() -> None:
    User.objects.create(username="ada")
    seen = Calendars({"c": lambda day: User.objects.filter(username="ada").exists()})
    assert seen.exclusion(["c"]).calendar_of(DAY) == "c"


@pytest.mark.django_db
@pytest.mark.parametrize("how", SPOILS)
def test_what_it_does_to_a_connection_is_undone_or_refused(how: str) -> None:
    User.objects.create(username="ada")
    said = ""
    try:
        Calendars({"c": _spoils(how)}).exclusion(["c"]).calendar_of(DAY)
    except CalendarError as error:
        said = error.message
    assert ("'c'" in said and "whose transaction is not its own" in said) is ("close" in how)
    assert User.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", SPOILS)
def test_a_start_and_the_other_tasks_go_on(how: str) -> None:
    with override_settings(DECLARATIVE_CRON={"CALENDARS": {"c": _spoils(how)}}):
        sim = Simulation(start="2024-01-01T10:10:00Z", time_zone="UTC")
        entry = {"cron": "0 11 * * *", "callback": sim.job(), "dialect": "posix"}
        sim.initialize([{"name": "a", "exclude": "c", **entry}, {"name": "b", **entry}])
        sim.advance_to("2024-01-01T11:00:01Z")
        assert "b" in TaskRun.objects.values_list("task_name", flat=True)
        sim.crash()
