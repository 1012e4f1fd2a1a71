"""The system checks: all mistakes at once, stable ids, hints, no database."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.core.management import CommandError, call_command

from django_declarative_cron import checks, conf
from django_declarative_cron.core.declarations.problems import Check
from django_declarative_cron.runtime import clock

from .callables import jobs

PATH = "tests.callables.jobs.send_mail"
FIVE = timedelta(minutes=5)


class StandingClock:
    def now(self) -> datetime:
        return datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def first_of_june(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr(clock, "system_clock", StandingClock())
    settings.SCHEDULED_TASKS = []
    settings.DECLARATIVE_CRON = {}


@pytest.fixture
def check(settings: Any) -> Callable[..., list[CheckMessage]]:
    def run(*tasks: Any) -> list[CheckMessage]:
        settings.SCHEDULED_TASKS = list(tasks)
        return run_checks(tags=[checks.TAG])

    return run


def entry(**keys: Any) -> dict[str, Any]:
    given = {"name": "a", "cron": "0 * * * *", "callback": PATH, **keys}
    return {key: value for key, value in given.items() if value is not Ellipsis}


def ids(messages: list[CheckMessage]) -> list[str]:
    return [str(message.id).removeprefix("declarative_cron.") for message in messages]


def test_the_table_of_ids_is_complete_and_in_order() -> None:
    codes = [each.code for each in Check]
    assert codes == sorted(codes, key=lambda code: ("EWI".index(code[0]), code))
    assert [str(each) for each in Check] == [f"declarative_cron.{code}" for code in codes]
    assert all(each.help for each in Check)


def test_nothing_declared_is_nothing_to_say(settings: Any) -> None:
    del settings.SCHEDULED_TASKS
    del settings.DECLARATIVE_CRON
    assert run_checks(tags=[checks.TAG]) == []


def test_sound_declarations_are_nothing_to_say(check: Any) -> None:
    assert check(("a", "0 7 * * 1-5", PATH, FIVE), entry(name="b"), entry(name="c")) == []


@pytest.mark.parametrize("whole", [(), None, "x", {}])
def test_a_list_that_is_none(settings: Any, whole: object) -> None:
    settings.SCHEDULED_TASKS = whole
    (message,) = run_checks(tags=[checks.TAG])
    assert (ids([message]), message.obj) == (["E001"], "SCHEDULED_TASKS")
    assert message.msg == "Registrations must be an array"
    kind = type(whole).__name__
    assert message.hint == f"Write a list in square brackets; this is of type {kind}."


def test_every_mistake_of_every_item_is_reported(check: Any) -> None:
    messages = check(
        5,
        ("", "*/15 * * * *", "no.such_thing", timedelta(-1)),
        entry(name="b", cron="@dayly", timezone="EST", gap="x", options={"retry": 1}, zzz=1),
        ("b", "0 0 30 2 *", lambda: None, timedelta(microseconds=1)),
        entry(name="c", callback=..., command=["clearsesions"], enabled=None),
        entry(name="d", callback=...),
    )
    assert ids(messages) == [
        *["E002"],
        *["E005", "E010", "E013", "E007"],
        *["E003", "E010", "E012", "E016", "E004"],
        *["E009", "E011", "E013", "E008"],
        *["E004", "E015"],
        *["E006"],
    ]
    assert all(message.hint for message in messages)
    assert [message.obj for message in messages[:2]] == ["SCHEDULED_TASKS[0]", "SCHEDULED_TASKS[1]"]
    assert messages[5].obj == "SCHEDULED_TASKS[2] 'b'"


def test_a_problem_has_what_initialize_raises() -> None:
    (problem,) = conf.problems([entry(), entry()])
    assert (problem.index, problem.task) == (1, "a")
    assert problem.error is not None
    assert problem.error.name == "ScheduleDuplicateTaskError"
    assert problem.message == problem.error.message


def test_shape_hints_name_every_wrong_part(check: Any) -> None:
    (message,) = check((5, None, None, "1h"))
    assert message.hint == (
        "The name is of type int; write a text. "
        'The cron expression is of type NoneType; write a text "0 7 * * 1-5". '
        'The callback is of type NoneType; write a path "app.module.function". '
        "The retry delay is of type str; write timedelta(minutes=5)."
    )


@pytest.mark.requirement("003 Input Validation/3")
def test_a_name_cannot_write_to_the_terminal(check: Any) -> None:
    (message,) = check(("\x1b[31m", "0 * * * *", PATH, FIVE))
    assert "\x1b" not in str(message)


def test_p93_what_settings_may_not_hold(check: Any) -> None:
    tasks = [
        (f"t{n}", "0 * * * *", callback, FIVE)
        for n, callback in enumerate([lambda: None, jobs.shop, jobs.bound, jobs.half])
    ]
    assert ids(check(*tasks)) == ["E008"] * 4
    assert len(conf.declarations(tasks)) == 4


def test_advice_is_a_warning_with_the_page_that_says_more(check: Any) -> None:
    # Without the mark ``django_db`` any query raises.
    messages = check(("a", "0 5 1-7 * 1", PATH, FIVE), entry(name="b", cron="*/7 * * * *"))
    assert ids(messages) == ["W001", "W071"]
    assert [message.obj for message in messages] == [
        "SCHEDULED_TASKS[0] 'a'",
        "SCHEDULED_TASKS[1] 'b'",
    ]
    assert str(messages[1].hint).endswith("More in docs/checks.md#w071.")


def test_a_project_without_zone(check: Any, settings: Any) -> None:
    settings.TIME_ZONE = None
    (message,) = check(("a", "0 * * * *", PATH, FIVE), ("b", "0 * * * *", PATH, FIVE))
    assert (ids([message]), message.obj) == (["W004"], "TIME_ZONE")
    assert check() == []


def test_a_zone_that_is_not_installed_is_reported_not_raised(
    check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Django itself refuses such a setting where it can look it up.
    from django.conf import settings

    monkeypatch.setattr(settings, "TIME_ZONE", "Mars/Olympus")
    assert ids(check(("a", "0 * * * *", PATH, FIVE), entry(name="b"))) == ["E012"]


def test_a_callback_that_cannot_be_called_so(check: Any) -> None:
    count = "tests.callables.jobs.count_stock"
    report = "tests.callables.jobs.report"
    messages = check(
        entry(name="a", callback=count),
        entry(name="b", callback=count, args=[1]),
        entry(name="c", callback=count, args=[1, 2]),
        entry(name="d", callback=report),
        entry(name="e", callback=report, args=[1]),
        entry(name="f", callback=..., command=["clearsessions"]),
    )
    assert ids(messages) == ["W009"] * 3
    assert [message.obj for message in messages] == [
        "SCHEDULED_TASKS[0] 'a'",
        "SCHEDULED_TASKS[2] 'c'",
        "SCHEDULED_TASKS[4] 'e'",
    ]
    assert messages[0].msg == (
        f"`{count}` cannot be called as declared: missing a required argument: 'site'"
    )


def test_a_callback_whose_signature_cannot_be_read_is_left_alone(
    check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs.send_mail, "__signature__", "nonsense", raising=False)
    assert check(entry()) == []


def test_options_are_checked(settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"WORKRS": 1, "LEASE": "x", "RENEW": 15}
    assert ids(run_checks(tags=[checks.TAG])) == ["E021", "E022", "E023"]


def test_check_fails_for_an_error_and_not_for_a_warning_which_can_be_silenced(
    settings: Any,
) -> None:
    settings.SCHEDULED_TASKS = [("a", "0 5 1-7 * 1", PATH, FIVE)]
    errors = io.StringIO()
    call_command("check", "--tag", checks.TAG, stderr=errors)
    assert "SCHEDULED_TASKS[0] 'a': (declarative_cron.W001)" in errors.getvalue()
    settings.SILENCED_SYSTEM_CHECKS = ["declarative_cron.W001"]
    call_command("check", "--tag", checks.TAG, "--fail-level", "WARNING", stderr=io.StringIO())
    settings.SCHEDULED_TASKS = [("a", "0 5 1-7 * 1", "tests.callables.jobs.send_mial", FIVE)]
    with pytest.raises(CommandError, match="`send_mail` exists"):
        call_command("check", "--tag", checks.TAG, stderr=io.StringIO())
