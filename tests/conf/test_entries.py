"""Dict entries: what each key holds, and that nothing in them is ignored silently."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import Declaration
from django_declarative_cron.core.http_api import entry_of
from django_declarative_cron.core.retry import RetryPolicy

from ..callables import jobs
from .conftest import PATH, declaration_of, entry, refused


async def _asynchronous() -> None: ...


def declared(**keys: Any) -> Declaration:
    return declaration_of(entry(**keys))


@pytest.mark.requirement("002 CRON-19")
def test_what_an_entry_has_when_it_says_no_more_than_it_must() -> None:
    declaration = declared()
    assert declaration.target.text == PATH
    assert declaration.target.args == ()
    assert declaration.timezone == "UTC"
    assert declaration.retry_delay is None
    assert declaration.retry == RetryPolicy()
    assert (declaration.schedule.gap, declaration.schedule.fold) == ("skip", "first")
    assert declaration.dialect == "ojs"
    assert declaration.overlap_policy == "skip"
    assert (declaration.timeout, declaration.queue) == (None, "default")
    assert (declaration.tags, declaration.meta) == ((), {})
    assert (declaration.enabled, declaration.description, declaration.options) == (True, "", {})


def test_every_key_reaches_the_declaration() -> None:
    declaration = declared(
        cron="30 2 * * *",
        timezone="America/New_York",
        args=[1, "two", None, {"three": [True, 0.5]}],
        enabled=False,
        description="Says\nwhy.",
        overlap_policy="coalesce",
        retry_delay=timedelta(seconds=7),
        dialect="posix",
        gap="shift",
        fold="both",
        options={"queue": "slow", "tags": ["a"], "meta": {"owner": "shop"}},
        runner="thread",
        atomic=False,
    )
    assert declaration.as_data() == {
        "name": "a",
        "cron": "30 2 * * *",
        "timezone": "America/New_York",
        "retry_delay_us": 7_000_000,
        "dialect": "posix",
        "gap": "shift",
        "fold": "both",
        "callback": PATH,
        "args": [1, "two", None, {"three": [True, 0.5]}],
        "command": False,
        "retry": None,
        "timeout": None,
        "runner": "thread",
        "atomic": False,
        "queue": "slow",
        "tags": ["a"],
        "meta": {"owner": "shop"},
        "enabled": False,
        "description": "Says\nwhy.",
        "overlap_policy": "coalesce",
        "options": {"queue": "slow", "tags": ["a"], "meta": {"owner": "shop"}},
    }


def test_tags_stand_beside_or_in_the_options() -> None:
    for keys in ({"tags": ["a", "b"]}, {"options": {"tags": ("a", "b")}}):
        declaration = declared(**keys)
        assert declaration.tags == ("a", "b")
        assert list(declaration.options["tags"]) == ["a", "b"]
    assert declared(tags=["a"], options={"tags": ["a"]}).tags == ("a",)


@pytest.mark.requirement("002 CRON-15")
def test_the_zone_of_an_entry_is_utc_wherever_the_project_is(settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    assert declared().timezone == "UTC"


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"type": PATH}, PATH),
        ({"command": ["clearsessions"]}, "clearsessions"),
        ({"command": "clearsessions"}, "clearsessions"),
        ({"command": ("clearsessions", "--verbosity", "0")}, "clearsessions --verbosity 0"),
        ({"callback": jobs.shop}, "tests.callables.jobs.Shop"),
    ],
)
def test_what_may_run(keys: dict[str, Any], text: str) -> None:
    target = declared(**{"callback": ..., **keys}).target
    assert target.text == text
    assert target.is_command is ("command" in keys)


@pytest.mark.requirement("002 CRON-02")
@pytest.mark.parametrize(
    "name",
    [
        *("a", "0", "nightly-stock", "shop.stock.count", "a" * 255, "1-.-"),
        # Hints propose these.
        *("send-digests", "a.b", "daily-report"),
    ],
)
def test_names_that_are_accepted(name: str) -> None:
    assert declared(name=name).name == name


def test_a_callback_that_may_have_to_be_ended_gets_a_process() -> None:
    assert declared().runner == "thread"
    assert declared(options={"timeout": 5}).runner == "process"
    assert declared(overlap_policy="cancel_previous").runner == "process"
    assert declared(options={"cpu_limit": 5}).runner == "process"
    assert declared(options={"timeout": 5}, runner="thread").runner == "thread"
    assert declared(options={"timeout": 5}, callback=lambda: None).runner == "thread"
    assert declared(options={"timeout": 5}, callback=_asynchronous).runner == "thread"


def test_a_task_for_an_engine_may_say_how_urgent_it_is() -> None:
    assert declared(runner="django_tasks", options={"priority": 5}).runner == "django_tasks"


def test_a_thread_that_cannot_be_ended_is_warned_of() -> None:
    (problem,) = conf.problems([entry(runner="thread", options={"timeout": 5})])
    assert str(problem.check) == "declarative_cron.W060"
    assert conf.problems([entry(options={"timeout": 5})]) == []


def test_an_absent_description_may_be_none() -> None:
    assert declared(description=None).description == ""


def test_a_retry_policy_is_merged_over_its_defaults() -> None:
    declaration = declared(options={"retry": {"max_attempts": 5, "initial_interval": "PT1M"}})
    assert declaration.retry == RetryPolicy(max_attempts=5, initial_interval=timedelta(minutes=1))


def test_a_time_limit_is_a_timedelta_or_a_number_of_seconds() -> None:
    assert declared(options={"timeout": 600}).timeout == timedelta(minutes=10)
    assert declared(options={"timeout": 0.25}).timeout == timedelta(milliseconds=250)
    declaration = declared(options={"timeout": timedelta(minutes=5)})
    assert declaration.timeout == timedelta(minutes=5)
    assert declaration.digest == declared(options={"timeout": 300.0}).digest


def test_an_operating_key_that_says_nothing_leaves_the_digest_as_it_was() -> None:
    unsaid: dict[str, Any] = {"spread": 0, "catch_up_window": None, "exclude_calendars": []}
    assert declared(**unsaid, pause_after_failures=None).digest == declared().digest


def test_another_retry_policy_is_no_override() -> None:
    one = declared(options={"retry": {"max_attempts": 5}})
    other = declared(options={"retry": {"initial_interval": "PT9S"}})
    assert one.identity == other.identity
    assert one.digest != other.digest
    assert declared(retry_delay=timedelta(seconds=1)).identity != one.identity


def test_a_delay_of_zero_is_accepted() -> None:
    assert declared(retry_delay=timedelta(0)).retry_delay == timedelta(0)


def test_keys_of_the_scheduler_are_ignored_and_said_so() -> None:
    given = entry(last_run_at=None, next_run_at="x", run_count=5, created_at="x")
    assert conf.declarations([given]) == conf.declarations([entry()])
    (one,) = conf.problems([entry(created_at="x")])
    assert one.message == "`created_at` is set by the scheduler and ignored."
    (found,) = conf.problems([given])
    assert str(found.check) == "declarative_cron.W008"
    assert found.message == (
        "`last_run_at`, `next_run_at`, `run_count`, `created_at` "
        "are set by the scheduler and ignored."
    )


# --- monitors ---


def test_an_address_that_is_refused_is_not_shown() -> None:
    error = refused([entry(monitor="hc.example/s3cret")])
    assert error.field == "monitor"
    assert "s3cret" not in f"{error} {error.details!r}"
    assert "unknown key" in refused([entry(monitor={"slugg": "a"})]).message


def test_no_row_has_an_address() -> None:
    plain, watched = declared(), declared(monitor="https://hc.example/a")
    assert "hc.example" not in repr(watched.as_data())
    assert plain.as_data().keys() == watched.as_data().keys()


def test_nobody_outside_may_name_an_address() -> None:
    given = {"name": "a", "cron": "0 4 * * *", "type": "a.b", "monitor": "https://x.example/"}
    _, flaws = entry_of(given)
    assert [(flaw.field, flaw.reason) for flaw in flaws] == [
        ("monitor", "is not accepted over HTTP: it is for SCHEDULED_TASKS")
    ]
