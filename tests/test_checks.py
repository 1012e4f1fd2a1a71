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
from django_declarative_cron.core.http_api import entry_of
from django_declarative_cron.exceptions import InvalidRegistrationError
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


AS_DICT = "or write the task as a dict, whose dialect `ojs` accepts it."


@pytest.mark.parametrize(
    ("cron", "hint"),
    [
        ("*/15 * * * *", f'Write "0,15,30,45 * * * *", {AS_DICT}'),
        ("0 4 * * MON-FRI", f'Write "0 4 * * 1-5", {AS_DICT}'),
        ("0 0 1 jan *", f'Write "0 0 1 1 *", {AS_DICT}'),
        ("@daily", f'Write "0 0 * * *", {AS_DICT}'),
        ("0 0 * * 7", f'Write "0 0 * * 0", {AS_DICT}'),
        (
            "0 9 * * * Europe/Berlin",
            'Write a dict with "cron": "0 9 * * *", "timezone": "Europe/Berlin".',
        ),
        ("0 0 30 2 *", "Name a day that at least one of the months has."),
        ("0 0 L * *", "Write the task as a dict, whose dialect `ojs` accepts it."),
        ("0 25 * * *", "Write an hour from 0 to 23."),
        ("0 25 * * 7", "Write an hour from 0 to 23."),
        ("60 * * * *", "Write a minute from 0 to 59."),
        ("0 0 0 * *", "Write a day from 1 to 31."),
        ("0 0 1-40 * *", "Write a day from 1 to 31."),
        ("0 0 1 13 *", "Write a month from 1 to 12."),
        ("0 0 * * 8", "Write a weekday from 0 to 6."),
        ("1" * 900 + " * * * *", "Write a minute from 0 to 59."),
        ("0 x * * *", 'Write * or numbers and ranges in the hour field, such as "1,3-5".'),
        ("0 0 * *", 'Write five fields, minute hour day month weekday, such as "0 7 * * 1-5".'),
        ("1" * 10_000, 'Write five fields, minute hour day month weekday, such as "0 7 * * 1-5".'),
    ],
)
def test_the_hint_of_a_refused_expression_is_what_to_write(
    check: Any, cron: str, hint: str
) -> None:
    (message,) = check(("a", cron, PATH, FIVE))
    assert message.hint == hint


@pytest.mark.parametrize("cron", ["0 0 31 2 *", "0 0 31 4,6,9,11 *"])
def test_p86_what_can_never_run_is_an_error(check: Any, cron: str) -> None:
    assert ids(check(("a", cron, PATH, FIVE))) == ["E011"]


@pytest.mark.parametrize("delay", [timedelta(seconds=-5), timedelta(microseconds=5)])
def test_the_hint_of_a_refused_delay_says_when_zero_retries(check: Any, delay: timedelta) -> None:
    (message,) = check(("a", "0 * * * *", PATH, delay))
    assert ids([message]) == ["E013"]
    assert message.hint == "Write timedelta(0) to retry after one second."


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


def test_p72_both_day_fields(check: Any) -> None:
    (message,) = check(("a", "0 5 1-7 * 1", PATH, FIVE))
    assert ids([message]) == ["W001"]
    assert message.msg == "`0 5 1-7 * 1` restricts both day fields: it runs when either matches"
    assert message.hint is not None and "first Monday" in message.hint


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("* 2 * * *", ["W002"]),
        ("* 0,2,4 * * *", ["W002"]),
        ("* 9-17 * * 1-5", ["W002"]),
        ("0-59 2 * * *", []),
        ("0 2 * * *", []),
        ("* * * * *", []),
    ],
)
def test_p89_every_minute_of_certain_hours(check: Any, cron: str, expected: list[str]) -> None:
    assert ids(check(("a", cron, PATH, FIVE))) == expected


def test_p89_the_proposal(check: Any) -> None:
    (message,) = check(("a", "*  2 * * *", PATH, FIVE))
    assert message.msg == (
        "`*  2 * * *` runs 60 times in each matching hour; did you mean `0 2 * * *`?"
    )


def test_p86_some_years_only(check: Any) -> None:
    (message,) = check(("a", "0 0 29 2 *", PATH, FIVE))
    assert ids([message]) == ["I001"]
    assert message.msg == "`0 0 29 2 *` runs only in some years, next 2028-02-29"


def test_p14_an_assumed_zone_names_the_local_time(check: Any, settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Moscow"
    (message,) = check(entry(cron="30 9 * * *"))
    assert (ids([message]), message.obj) == (["W003"], "SCHEDULED_TASKS[0] 'a'")
    assert message.msg == (
        "names no time zone, so `30 9 * * *` is read in UTC: the next run is at 12:30 Europe/Moscow"
    )
    assert message.hint == (
        'Write "timezone": "Europe/Moscow", or "timezone": "UTC" if that is meant.'
    )


@pytest.mark.parametrize(
    ("zone", "keys", "expected"),
    [
        ("Europe/Moscow", {"timezone": "UTC"}, []),
        ("Europe/Moscow", {"cron": "0 * * * *"}, []),
        ("UTC", {}, []),
        ("Etc/UTC", {}, []),
        ("Africa/Abidjan", {}, []),
        ("Europe/London", {}, ["W003"]),
    ],
    ids=["said", "no fixed hour", "the same", "another name", "same all year", "same in winter"],
)
def test_p14_only_where_it_makes_a_difference(
    check: Any, settings: Any, zone: str, keys: dict[str, Any], expected: list[str]
) -> None:
    settings.TIME_ZONE = zone
    assert ids(check(entry(**{"cron": "30 9 * * *", **keys}))) == expected


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


def test_a_run_lost_in_a_gap_is_dated(check: Any) -> None:
    (message,) = check(entry(cron="30 2 * * *", timezone="America/New_York"))
    assert ids([message]) == ["W005"]
    assert message.msg == (
        "the local time 02:30 does not exist on 2027-03-14 in America/New_York: "
        "no run then, the next one is 2027-03-15 02:30"
    )


def test_p07_a_weekly_task_that_loses_a_whole_period(check: Any) -> None:
    (message,) = check(entry(cron="0 0 * * 0", timezone="America/Santiago"))
    assert ids([message]) == ["W005"]
    assert "00:00 does not exist on 2026-09-06" in message.msg
    assert "the next one is 2026-09-13 00:00" in message.msg


@pytest.mark.parametrize(
    "keys",
    [
        {"cron": "30 2 * * *", "gap": "shift"},
        {"cron": "30 3 * * *"},
        {"cron": "0 2,3 * * *"},
        {"cron": "30 2 1 6 *"},
        {"cron": "30 2 * * *", "timezone": "UTC"},
    ],
    ids=["shifted", "another hour", "goes on at once", "another month", "no changes"],
)
def test_runs_that_no_gap_takes(check: Any, keys: dict[str, Any]) -> None:
    assert check(entry(**{"timezone": "America/New_York", **keys})) == []


def test_a_local_time_that_comes_twice(check: Any) -> None:
    task = entry(cron="30 1 * * *", timezone="America/New_York")
    (message,) = check(task)
    assert ids([message]) == ["I002"]
    assert message.msg == (
        "the local time 2026-11-01 01:30 comes twice in America/New_York: "
        "it runs the first time only"
    )
    assert check({**task, "fold": "both"}) == []


def test_p02_tasks_that_fall_silent_are_told_together(check: Any) -> None:
    zone = "America/New_York"
    tasks = [entry(name=f"t{n}", cron="* * * * *", timezone=zone) for n in range(5)]
    both = entry(name="both", cron="* * * * *", timezone=zone, fold="both")
    (message,) = check(*tasks, both, entry(name="utc", cron="* * * * *"))
    assert (ids([message]), message.obj) == (["W006"], zone)
    assert message.msg == (
        "the local time in America/New_York repeats itself on 2026-11-01: "
        "no runs from 06:00 to 07:00 UTC of 't0', 't1', 't2' and 2 more"
    )


def test_only_what_falls_silent_is_told(check: Any) -> None:
    assert check(entry(cron="0-59 * 1 6 *", timezone="America/New_York")) == []
    (message,) = check(entry(cron="0-59 * 7 * *", timezone="America/New_York"))
    assert "repeats itself on 2027-11-07" in message.msg


def test_no_occurrence_ahead(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    end = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    monkeypatch.setattr(StandingClock, "now", lambda self: end)
    (message,) = check(("a", "0 7 * * *", PATH, FIVE))
    assert ids([message]) == ["W007"]
    assert message.msg == "`0 7 * * *` has no occurrence within 50 years"


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


def test_several_tasks_may_share_a_callback(check: Any) -> None:
    assert check(entry(name="a"), entry(name="b")) == []


def test_options_are_checked(settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"WORKRS": 1, "LEASE": "x", "RENEW": 15}
    assert ids(run_checks(tags=[checks.TAG])) == ["E021", "E022", "E023"]


def test_an_id_can_be_silenced(settings: Any) -> None:
    settings.SCHEDULED_TASKS = [("a", "0 5 1-7 * 1", PATH, FIVE)]
    settings.SILENCED_SYSTEM_CHECKS = ["declarative_cron.W001"]
    errors = io.StringIO()
    call_command("check", "--tag", checks.TAG, "--fail-level", "WARNING", stderr=errors)
    assert "W001" not in errors.getvalue()


def test_check_fails_for_an_error_and_not_for_a_warning(settings: Any) -> None:
    settings.SCHEDULED_TASKS = [("a", "0 5 1-7 * 1", PATH, FIVE)]
    errors = io.StringIO()
    call_command("check", "--tag", checks.TAG, stderr=errors)
    assert "SCHEDULED_TASKS[0] 'a': (declarative_cron.W001)" in errors.getvalue()
    settings.SCHEDULED_TASKS = [("a", "0 5 1-7 * 1", "tests.callables.jobs.send_mial", FIVE)]
    with pytest.raises(CommandError, match="`send_mail` exists"):
        call_command("check", "--tag", checks.TAG, stderr=io.StringIO())


def test_the_database_is_not_touched(check: Any) -> None:
    # Without the mark ``django_db`` any query raises.
    assert ids(check(("a", "0 5 1-7 * 1", PATH, FIVE))) == ["W001"]


# --- MONITOR and NOTIFY ---


NIGHTLY = {"name": "a", "cron": "0 4 * * *", "timezone": "UTC", "callback": "os.getcwd"}


def found(settings: Any, options: Any, *entries: Any) -> list[tuple[str, str]]:
    settings.DECLARATIVE_CRON = options
    settings.SCHEDULED_TASKS = list(entries)
    messages = run_checks(tags=[checks.TAG])
    return [(str(each.id).rpartition(".")[2], str(each.msg)) for each in messages]


def test_a_task_that_asks_for_a_monitor_which_nobody_names_is_warned_of(settings: Any) -> None:
    assert found(settings, {}, {**NIGHTLY, "monitor": True}) == [
        ("W052", "has `monitor`, and nothing says where its check-ins go")
    ]
    for options, own in (
        ({}, "https://hc.example/a"),
        ({}, False),
        ({"MONITOR": {"sentry": True}}, True),
        ({"MONITOR": {"ping": "https://hc.example/{slug}"}}, {"failures": 2}),
    ):
        assert found(settings, options, {**NIGHTLY, "monitor": own}) == [], own


def test_what_sends_has_to_be_installed(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    options = {
        "MONITOR": {"sentry": True, "ping": "https://hc.example/{slug}"},
        "NOTIFY": [{"kind": "slack", "url": "https://hooks.example.org/a"}],
    }
    assert found(settings, options) == [
        ("E051", "needs sentry_sdk, which is not installed"),
        ("E051", "needs urllib3, which is not installed"),
        ("E051", "needs urllib3, which is not installed"),
    ]
    assert found(settings, {"NOTIFY": [{"kind": "mail", "to": ["a@b"]}]}) == []


def test_a_webhook_without_a_signature_is_warned_of(settings: Any) -> None:
    options = {"NOTIFY": [{"kind": "webhook", "url": "https://hooks.example.org/s3cret"}]}
    ((check, words),) = found(settings, options)
    assert check == "W051"
    assert "s3cret" not in words


def test_an_address_that_is_refused_is_not_shown() -> None:
    with pytest.raises(InvalidRegistrationError) as refused:
        conf.declarations([{**NIGHTLY, "monitor": "hc.example/s3cret"}])
    assert "s3cret" not in "".join([str(refused.value), repr(refused.value.details)])
    with pytest.raises(InvalidRegistrationError, match="unknown key"):
        conf.declarations([{**NIGHTLY, "monitor": {"slugg": "a"}}])


def test_no_row_has_an_address() -> None:
    plain, watched = conf.declarations(
        [NIGHTLY, {**NIGHTLY, "name": "b", "monitor": "https://hc.example/a"}]
    )
    assert "hc.example" not in repr(watched.as_data())
    assert plain.as_data().keys() == watched.as_data().keys()


def test_nobody_outside_may_name_an_address() -> None:
    given = {"name": "a", "cron": "0 4 * * *", "type": "a.b", "monitor": "https://x.example/"}
    _, flaws = entry_of(given)
    assert [(flaw.field, flaw.reason) for flaw in flaws] == [
        ("monitor", "cannot be said over HTTP: it is for SCHEDULED_TASKS")
    ]
