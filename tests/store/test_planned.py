"""What is asked again and again is planned once, where the server is spoken to directly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from django.db import DataError, ProgrammingError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.store import limits, planned
from django_declarative_cron.store.peek import peek

from .conftest import Deployment

pytestmark = pytest.mark.django_db

SQL = "SELECT 1, 'a'"
LATER = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def own() -> Iterator[BaseDatabaseWrapper]:
    """Give a connection in no transaction."""
    made = connection.copy()
    if not limits.takes_several(made):
        pytest.skip("nothing is kept by this database, or told by its driver")
    yield made
    made.close()


def _ask(own: BaseDatabaseWrapper, sql: str = SQL, times: int = 1) -> list[str]:
    """Give the first words of what is sent as a question is asked."""
    with CaptureQueriesContext(own) as captured:
        for _ in range(times):
            assert planned.first_row(own, sql, None) == (1, "a")
    return [query["sql"].partition(" ")[0] for query in captured.captured_queries]


def test_a_question_is_asked_twice_before_it_is_kept(own: BaseDatabaseWrapper) -> None:
    said = [_ask(own) for _ in range(5)]
    assert said[:2] == [["SELECT"], ["SELECT"]]
    assert said[2:] == [["SELECT", "PREPARE", "EXECUTE"], ["EXECUTE"], ["EXECUTE"]]
    assert _ask(own, f"{SQL} ", times=4)[2:] == ["PREPARE", "EXECUTE", "EXECUTE"]


def test_nothing_is_kept_where_somebody_stands_between_us_and_the_server(
    own: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.ensure_connection()
    raw: Any = own.connection
    monkeypatch.setattr(type(raw.info), "backend_pid", property(lambda info: -1))
    assert _ask(own, times=5) == ["SELECT"] * 6


@pytest.mark.parametrize(
    "said", [{"DISABLE_SERVER_SIDE_CURSORS": True}, {"OPTIONS": {"prepare_threshold": None}}]
)
def test_nothing_is_kept_where_the_project_is_against_it(
    own: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any]
) -> None:
    options = {**own.settings_dict["OPTIONS"], **said.pop("OPTIONS", {})}
    own.settings_dict = {**own.settings_dict, **said, "OPTIONS": options}
    assert _ask(own, times=5) == ["SELECT"] * 5


def test_nothing_is_kept_in_a_transaction_of_somebody_else(own: BaseDatabaseWrapper) -> None:
    asked = f"{SQL} -- in a transaction"
    with transaction.atomic(), CaptureQueriesContext(connection) as captured:
        for _ in range(5):
            assert planned.first_row(connection, asked, None) == (1, "a")
    assert [query["sql"] for query in captured.captured_queries] == [asked] * 5


def test_nor_in_one_that_was_begun_by_hand(own: BaseDatabaseWrapper) -> None:
    _ask(own, times=4)
    with own.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    own.set_autocommit(False)
    assert _ask(own, times=2) == ["SELECT", "SELECT"]
    own.rollback()


def test_nothing_is_kept_on_what_stands_in_for_a_connection(own: BaseDatabaseWrapper) -> None:
    class Lent:
        """A connection as pools of others lend it: no word of the process, and not for ever."""

        __slots__ = ("info", "real")

        def __init__(self, real: Any) -> None:
            self.real, self.info = real, {}

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    own.ensure_connection()
    own.connection = Lent(own.connection)
    assert _ask(own, times=5) == ["SELECT"] * 5


def test_a_session_answers_no_other_question_to_a_name_than_the_one_it_was_given_for(
    own: BaseDatabaseWrapper,
) -> None:
    other = own.copy()
    try:
        _ask(own, times=3)
        with CaptureQueriesContext(other) as captured:
            for _ in range(3):
                planned.first_row(other, "SELECT 2", None)
    finally:
        other.close()
    # As two would do that a pooler gives the same session, and that took it for their own.
    with own.cursor() as cursor, pytest.raises(ProgrammingError, match="does not exist"):
        cursor.execute(captured.captured_queries[-1]["sql"])


def test_what_somebody_has_made_the_session_forget_is_asked_as_it_is(
    own: BaseDatabaseWrapper,
) -> None:
    _ask(own, times=4)
    with own.cursor() as cursor:
        cursor.execute("DISCARD ALL")
    assert _ask(own, times=3) == ["EXECUTE", "SELECT", "SELECT", "SELECT"]


def test_what_can_be_kept_no_more_as_a_column_was_added_is_asked_as_it_is(
    own: BaseDatabaseWrapper,
) -> None:
    sql = "SELECT * FROM asked"
    with own.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE asked AS SELECT 1 AS one, 'a' AS two")
    _ask(own, sql, times=4)
    with own.cursor() as cursor:
        cursor.execute("ALTER TABLE asked ADD later int")
    assert planned.first_row(own, sql, None) == (1, "a", None)


def test_a_name_that_somebody_has_taken_is_left_to_them(
    own: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ask(own, times=4)
    monkeypatch.setattr(planned, "_sessions", WeakKeyDictionary())
    assert _ask(own, times=4)[2:] == ["SELECT", "PREPARE", "SELECT", "SELECT"]


def test_a_new_connection_knows_nothing_of_what_the_one_before_kept(
    own: BaseDatabaseWrapper,
) -> None:
    _ask(own, times=4)
    own.close()
    own.connect()
    assert _ask(own, times=4)[2:] == ["SELECT", "PREPARE", "EXECUTE", "EXECUTE"]


def test_it_is_planned_anew_now_and_then(
    own: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned, "AGAIN", 5)
    said = _ask(own, times=9)[3:]
    anew = ["EXECUTE", "EXECUTE", "EXECUTE", "DEALLOCATE"]
    assert said == ["PREPARE", *anew, *anew, "EXECUTE"]


def _kept(raw: Any) -> int:
    """Count what a session keeps of ours."""
    found = raw.execute(
        "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'declarative_cron_%'"
    )
    return int(found.fetchone()[0])


def test_what_is_wrong_with_the_question_is_told(own: BaseDatabaseWrapper) -> None:
    sql = "SELECT 1, 'a' WHERE 1 / (SELECT count(*)::int FROM pg_stat_activity WHERE pid = 0) = 1"
    for _ in range(5):
        with pytest.raises(DataError):
            planned.first_row(own, sql, None)


@pytest.mark.django_db(transaction=True)
def test_the_idle_look_sees_what_has_changed_however_often_it_looked() -> None:
    made = Deployment(1)
    made.initialize()
    tasks = ScheduledTask.objects.filter(scheduler__deployment=made.member.deployment)
    # By turns with instants that Django would read as local times.
    for minute in range(5):
        with override_settings(USE_TZ=bool(minute % 2), TIME_ZONE="America/New_York"):
            tasks.update(wake_at=LATER + timedelta(minutes=minute))
            seen = peek(made.member)
            assert seen is not None and seen.next_wake == LATER + timedelta(minutes=minute)
    assert peek(replace(made.member, deployment="none")) is None
