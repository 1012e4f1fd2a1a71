"""What is written comes back as the same instant, however it is asked for and whatever the zone.

Without ``USE_TZ`` Django reads and writes local times, and an hour of these happens twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import django
import pytest
from django.apps import apps
from django.core import serializers
from django.db import IntegrityError, connection, models, transaction
from django.db.models import Case, Count, F, Max, Min, OuterRef, Subquery, Value, When
from django.db.models.functions import Coalesce, ExtractHour, Greatest, TruncDay
from django.test.utils import override_settings

from django_declarative_cron.fields import InstantField
from django_declarative_cron.models import SchedulerState, TaskRun
from django_declarative_cron.store.database import DatabaseNow

pytestmark = pytest.mark.django_db

NEW_YORK, LORD_HOWE = ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")
HOUR = timedelta(hours=1)

# Each pair is the same time on the clocks of its zone, or lies on both sides of a gap.
TWICE = {
    NEW_YORK: [datetime(2026, 11, 1, hour, 30, 0, 5, tzinfo=UTC) for hour in (5, 6)],
    LORD_HOWE: [datetime(2026, 4, 4, *at, 0, 5, tzinfo=UTC) for at in ((14, 40), (15, 10))],
}
GAP = {
    NEW_YORK: [datetime(2026, 3, 8, *at, tzinfo=UTC) for at in ((6, 59), (7, 0))],
    LORD_HOWE: [datetime(2026, 10, 3, *at, tzinfo=UTC) for at in ((15, 29), (15, 30))],
}


@pytest.fixture(params=[(False, NEW_YORK), (False, LORD_HOWE), (True, NEW_YORK)], ids=str)
def zone(request: pytest.FixtureRequest) -> Iterator[ZoneInfo]:
    """Let the project have a zone, with and without ``USE_TZ``."""
    is_aware, given = request.param
    with override_settings(USE_TZ=is_aware, TIME_ZONE=given.key):
        yield given


def stored(*instants: datetime) -> SchedulerState:
    """Store one run for each instant."""
    state, _ = SchedulerState.objects.get_or_create(deployment="default")
    for at in instants:
        TaskRun.objects.create(scheduler=state, task_name="t", scheduled_for=at, started_at=at)
    return state


def runs() -> models.QuerySet[TaskRun]:
    return TaskRun.objects.order_by("scheduled_for")


def ways() -> dict[str, Callable[[], list[Any]]]:
    """Give the ways in which all instants are asked for, oldest first."""
    newest = TaskRun.objects.filter(pk=OuterRef("pk")).values("scheduled_for")[:1]
    doubled = Case(When(pk__gt=0, then=F("scheduled_for")), output_field=InstantField())
    beside = {
        "another question": Subquery(newest),
        "either": Coalesce("finished_at", "scheduled_for"),
        "case": doubled,
        "greatest": Greatest("scheduled_for", "started_at"),
        "by another name": F("scheduled_for"),
        "newest": Max("scheduled_for"),
    }
    found: dict[str, Callable[[], list[Any]]] = {
        "rows": lambda: [run.scheduled_for for run in runs()],
        "some columns": lambda: [run.scheduled_for for run in runs().only("scheduled_for")],
        "later": lambda: [run.scheduled_for for run in runs().defer("scheduled_for")],
        "values": lambda: [each["scheduled_for"] for each in runs().values("scheduled_for")],
        "list": lambda: list(runs().values_list("scheduled_for", flat=True)),
        "different": lambda: list(runs().values_list("scheduled_for", flat=True).distinct()),
        "grouped": lambda: [
            at for at, _ in runs().values_list("scheduled_for").annotate(Count("pk"))
        ],
        "streamed": lambda: [
            at for (at,) in runs().values_list("scheduled_for").iterator(chunk_size=1)
        ],
        "ends": lambda: list(
            TaskRun.objects.aggregate(a=Min("scheduled_for"), b=Max("scheduled_for")).values()
        ),
        "ends of some": lambda: list(
            runs()[:2].aggregate(a=Min("scheduled_for"), b=Max("scheduled_for")).values()
        ),
        "united": lambda: list(
            runs()
            .order_by()
            .values_list("scheduled_for", flat=True)
            .union(runs().order_by().values_list("started_at", flat=True))
            .order_by("scheduled_for")
        ),
        "among": lambda: list(
            runs()
            .filter(scheduled_for__in=TaskRun.objects.values("started_at"))
            .values_list("scheduled_for", flat=True)
        ),
        "raw": lambda: [
            run.scheduled_for
            for run in TaskRun.objects.raw(
                f"SELECT * FROM {TaskRun._meta.db_table} ORDER BY scheduled_for"
            )
        ],
    }
    for name, expression in beside.items():
        found[name] = lambda expression=expression: list(
            runs().annotate(at=expression).values_list("at", flat=True)
        )
    return found


@pytest.mark.parametrize("instants", [TWICE, GAP], ids=["twice", "gap"])
def test_it_is_read(zone: ZoneInfo, instants: dict[ZoneInfo, list[datetime]]) -> None:
    stored(*instants[zone])
    found = {way: ask() for way, ask in ways().items()}
    assert found == dict.fromkeys(found, instants[zone])
    assert {(at.tzinfo, at.fold) for each in found.values() for at in each} == {(UTC, 0)}


def test_it_is_written_as_it_stands_in_utc(zone: ZoneInfo) -> None:
    """What other programs, and other settings of this one, find in the column."""
    stored(*TWICE[zone])
    column = {"postgresql": "(scheduled_for AT TIME ZONE 'UTC')::text"}.get(
        connection.vendor, "scheduled_for"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column} FROM {TaskRun._meta.db_table} ORDER BY scheduled_for")
        found = [str(at) for (at,) in cursor.fetchall()]
    assert found == [f"{at:%Y-%m-%d %H:%M:%S.%f}" for at in TWICE[zone]]


def test_it_is_found(zone: ZoneInfo) -> None:
    first, second = TWICE[zone]
    stored(first, second)

    def found(**conditions: Any) -> list[datetime]:
        return list(runs().filter(**conditions).values_list("scheduled_for", flat=True))

    assert found(scheduled_for=second) == [second]
    assert found(scheduled_for__in=[first, first + HOUR * 9]) == [first]
    assert found(scheduled_for__range=(first - HOUR / 4, first + HOUR / 4)) == [first]
    assert found(scheduled_for__gt=first) == [second]
    # What has no zone is a local time, in its first pass or in the second.
    for at in (first, second):
        assert found(scheduled_for=at.astimezone(zone).replace(tzinfo=None)) == [at]
    assert found(scheduled_for__lt=DatabaseNow() - HOUR * 24) == [
        at for at in (first, second) if at < datetime.now(UTC) - HOUR * 24
    ]


@pytest.mark.skipif(connection.vendor == "mysql", reason="a server needs tables of zones for it")
@override_settings(USE_TZ=True, TIME_ZONE="America/New_York")
def test_days_begin_by_the_clocks_of_the_project() -> None:
    stored(datetime(2026, 11, 20, 2, tzinfo=UTC))
    found = TaskRun.objects.filter(scheduled_for__date=date(2026, 11, 19))
    days = found.annotate(day=TruncDay("scheduled_for"), hour=ExtractHour("scheduled_for"))
    assert days.values_list("day", "hour").get() == (datetime(2026, 11, 19, 5, tzinfo=UTC), 21)


def test_it_is_changed(zone: ZoneInfo) -> None:
    first, second = TWICE[zone]
    stored(first)
    TaskRun.objects.update(
        started_at=second, finished_at=Coalesce("finished_at", Value(second, InstantField()))
    )
    assert TaskRun.objects.values_list("started_at", "finished_at").get() == (second, second)
    TaskRun.objects.update(finished_at=F("scheduled_for"))
    assert TaskRun.objects.get().finished_at == first
    run = TaskRun.objects.get()
    run.finished_at = second
    TaskRun.objects.bulk_update([run], ["finished_at"])
    run.refresh_from_db()
    assert run.finished_at == second
    run.finished_at = Coalesce("started_at", "scheduled_for")  # type: ignore[assignment]
    run.save(update_fields=["finished_at"])
    assert TaskRun.objects.get().finished_at == second
    if django.VERSION >= (6, 0):
        assert run.finished_at == second


def test_the_databases_time_is_ours(zone: ZoneInfo) -> None:
    state = stored()
    for tried in (DatabaseNow(), Coalesce(None, DatabaseNow(), output_field=InstantField())):
        before = datetime.now(UTC)
        now = SchedulerState.objects.annotate(now=tried).get(pk=state.pk).now
        assert abs(now - before) < timedelta(minutes=1)


def test_fixtures_keep_it(zone: ZoneInfo) -> None:
    for at in TWICE[zone]:
        [run] = [stored(at).runs.get()]
        text = serializers.serialize("json", [run])
        run.delete()
        [again] = serializers.deserialize("json", text)
        again.save()
        # JSON knows milliseconds.
        kept = TaskRun.objects.get().scheduled_for
        assert kept == at.replace(microsecond=0)
        TaskRun.objects.all().delete()


INSTANTS = [
    (model, field)
    for model in apps.get_app_config("django_declarative_cron").get_models()
    for field in model._meta.concrete_fields
    if isinstance(field, InstantField)
]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="its columns take infinity")
@pytest.mark.parametrize("said", ["infinity", "-infinity", "10000-01-01", "0044-03-15 BC"])
def test_no_column_takes_what_no_driver_reads(said: str) -> None:
    with connection.cursor() as cursor:
        for model, field in INSTANTS:
            table, column = model._meta.db_table, field.column
            copy = (
                f"CREATE TEMPORARY TABLE taken (LIKE {table} INCLUDING CONSTRAINTS) ON COMMIT DROP"
            )
            cursor.execute(copy)
            for other in model._meta.concrete_fields:
                cursor.execute(f'ALTER TABLE taken ALTER "{other.column}" DROP NOT NULL')
            with pytest.raises(IntegrityError, match=f"{column}_check"), transaction.atomic():
                cursor.execute(f"INSERT INTO taken ({column}) VALUES (%s)", [said])
            cursor.execute(f"INSERT INTO taken ({column}) VALUES ('9999-12-31 23:59:59.999999Z')")
            cursor.execute("DROP TABLE taken")
    assert len(INSTANTS) > 40
