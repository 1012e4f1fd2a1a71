"""Registering, listing, showing, switching and removing over HTTP (002 section 8)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from django_declarative_cron.core.http_api import FORBIDDEN
from django_declarative_cron.models import ScheduledTask, TaskOverride
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from .conftest import ENTRY, Answer, Caller

COMPLETE = {
    "name": "daily-report",
    "cron": "0 9 * * *",
    "timezone": "America/New_York",
    "type": "report.generate",
    "args": [{"report": "daily_summary"}],
    "options": {"queue": "reports", "tags": ["a"], "meta": {"b": 1}},
    "overlap_policy": "coalesce",
    "enabled": True,
    "description": "Generate daily summary report at 9 AM ET",
}
LIST = "/v1/cron"
ONE = "/v1/cron/daily"
WRONG, OWNED, ABSENT = (400, "invalid_request"), (409, "duplicate"), (404, "not_found")


def job_of(answer: Answer, status: int = 200) -> dict[str, Any]:
    assert answer.status == status, answer.data
    job: dict[str, Any] = answer.data["cron_job"]
    return job


# --- register ---


def test_a_task_is_registered_and_shown_in_both_envelopes(caller: Caller) -> None:
    answer = caller.post(LIST, COMPLETE)
    assert (answer.status, answer.headers["Location"]) == (201, "/ojs/v1/cron/daily-report")
    job, other = answer.data["cron_job"], answer.data["cron"]
    managed = {key: job.pop(key) for key in ("last_run_at", "next_run_at", "run_count")}
    created = job.pop("created_at")
    assert job == COMPLETE
    assert (managed["last_run_at"], managed["run_count"]) == (None, 0)
    assert managed["next_run_at"].endswith(":00:00Z")
    assert created.endswith("Z")
    assert (other["expression"], other["created_at"]) == ("0 9 * * *", created)
    assert other["job_template"] == {key: COMPLETE[key] for key in ("type", "args", "options")}
    assert not {"cron", "type", "args", "options"} & set(other)
    assert not {"expression", "job_template"} & set(job)


def test_operating_keys_are_accepted_and_returned(caller: Caller, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"CALENDARS": {"holidays": "shop.calendars.is_holiday"}}
    said = {
        "spread": "PT30M",
        "catch_up_window": 7200,
        "exclude_calendars": ["holidays"],
        "pause_after_failures": 5,
    }
    job = job_of(caller.post(LIST, {**COMPLETE, **said}), 201)
    assert {key: job[key] for key in said} == said
    row = ScheduledTask.objects.get()
    assert row.registered_by == "token everything"
    assert {key: row.declaration[key] for key in said} == {**said, "spread": 1800.0}


@pytest.mark.requirement("002 CRON-01", "002 CRON-26")
def test_registering_again_updates(caller: Caller) -> None:
    first = job_of(caller.post(LIST, ENTRY), 201)
    job = job_of(caller.post(LIST, {**ENTRY, "cron": "0 10 * * *", "args": [8]}))
    assert (job["cron"], job["args"]) == ("0 10 * * *", [8])
    assert job["created_at"] == first["created_at"]
    assert ScheduledTask.objects.count() == 1


TEMPLATE = {"type": "report.generate", "args": [7]}


@pytest.mark.parametrize(
    "posted",
    [
        {"expression": "0 9 * * *", **TEMPLATE},
        {"expression": "0 9 * * *", "job_template": TEMPLATE},
        {"cron": "0 9 * * *", "job_template": {"type": "report.generate"}, "args": [7]},
        {**ENTRY, "timezone": "UTC", "description": None, "status": "active", "id": "x"},
    ],
)
def test_the_known_clients_are_understood(caller: Caller, posted: dict[str, Any]) -> None:
    caller.post(LIST, ENTRY)
    job = job_of(caller.post(LIST, {"name": "daily", **posted}))
    assert (job["cron"], job["type"], job["args"]) == ("0 9 * * *", "report.generate", [7])


@pytest.mark.parametrize(
    ("posted", "options"),
    [
        # At the top level, and in a template.
        (
            {"queue": "slow", "job_template": {**TEMPLATE, "options": {"tags": ["x"]}}},
            {"queue": "slow", "tags": ["x"]},
        ),
        ({"options": {"timeout_ms": 1500}}, {"timeout": 2}),
        (
            {"options": {"retry": {"initial_interval_ms": 500, "max_attempts": 2}}},
            {"retry": {"initial_interval": "PT0.500S", "max_attempts": 2}},
        ),
    ],
)
def test_the_options_of_known_clients_are_understood(
    caller: Caller, posted: dict[str, Any], options: dict[str, Any]
) -> None:
    assert job_of(caller.post(LIST, {**ENTRY, **posted}), 201)["options"] == options


@pytest.mark.requirement("002 CRON-06")
def test_managed_keys_are_ignored(caller: Caller) -> None:
    managed = {"run_count": 99, "created_at": "2001-01-01T00:00:00Z", "next_run_at": None}
    job = caller.post(LIST, {**ENTRY, **managed, "last_run_at": 5}).data["cron_job"]
    assert (job["run_count"], job["last_run_at"]) == (0, None)
    assert not job["created_at"].startswith("2001")


@pytest.mark.requirement("002 CRON-02", "002 CRON-11", "002 CRON-14")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "Daily"}, "name"),
        ({"name": "a" * 256}, "name"),
        ({"name": 7}, "name"),
        ({"cron": "60 * * * *"}, "minute"),
        ({"cron": ""}, "expression"),
        ({"timezone": "EST"}, "timezone"),
        ({"timezone": "+05:00"}, "timezone"),
        ({"args": {"a": 1}}, "args"),
        ({"enabled": "yes"}, "enabled"),
        ({"overlap_policy": "sometimes"}, "overlap_policy"),
        ({"nmae": "x"}, "nmae"),
        ({"options": {"quue": "x"}}, "options.quue"),
        ({"callback": "os.system"}, "callback"),
        ({"command": ["flush", "--no-input"]}, "command"),
        ({"dialect": "posix"}, "dialect"),
        ({"runner": "process"}, "runner"),
        ({"atomic": True}, "atomic"),
        ({"retry_delay": 5}, "retry_delay"),
        ({"expression": "0 10 * * *"}, "expression"),
        ({"job_template": {"type": "cache.warm"}}, "job_template.type"),
        ({"job_template": {"callback": "os.system"}}, "job_template.callback"),
        ({"job_template": "x"}, "job_template"),
        ({"exclude_calendars": "holidays"}, "exclude_calendars"),
        ({"spread": "half an hour"}, "spread"),
        ({"catch_up_window": -5}, "catch_up_window"),
        ({"pause_after_failures": 0}, "pause_after_failures"),
    ],
)
def test_a_mistake_is_named(caller: Caller, change: dict[str, Any], field: str) -> None:
    answer = caller.post(LIST, {**ENTRY, **change})
    assert answer.code == WRONG
    assert answer.data["error"]["details"]["field"] == field
    assert not ScheduledTask.objects.exists()


@pytest.mark.parametrize("missing", ["name", "cron", "type"])
def test_a_missing_key_is_named(caller: Caller, missing: str) -> None:
    answer = caller.post(LIST, {key: ENTRY[key] for key in ENTRY if key != missing})
    assert answer.code == WRONG
    assert "is missing" in answer.data["error"]["message"]


@pytest.mark.requirement("002 CRON-04")
@pytest.mark.parametrize(
    "path", ["os.system", "tests.http.never.imported", "report.genrate", "a", "Report.Generate"]
)
def test_a_type_that_is_not_registered_is_refused_and_never_imported(
    caller: Caller, path: str
) -> None:
    import sys

    answer = caller.post(LIST, {**ENTRY, "type": path})
    assert answer.code == WRONG
    assert answer.data["error"]["details"]["field"] == "type"
    assert "tests.http.never" not in sys.modules
    assert not ScheduledTask.objects.exists()


def test_all_problems_are_returned_together(caller: Caller) -> None:
    answer = caller.post(LIST, {"name": "a", "cron": "x", "timezone": "EST", "type": "no"})
    problems = answer.data["error"]["details"]["problems"]
    assert {each["id"].rpartition(".")[2] for each in problems} == {"E007", "E010", "E012"}


@pytest.mark.parametrize(
    "change",
    [
        {"cron": "0," * 500 + "0 7 * * *"},
        {"description": "d" * 2001},
        {"args": ["d" * 65_536]},
        {"options": {"meta": {"a": "d" * 65_536}}},
    ],
)
def test_a_text_beyond_its_limit_is_422(caller: Caller, change: dict[str, Any]) -> None:
    answer = caller.post(LIST, {**ENTRY, **change})
    assert answer.code == (422, "unsupported")
    assert "must have at most" in answer.data["error"]["message"]
    assert len(json.dumps(answer.data)) < 2000
    assert not ScheduledTask.objects.exists()


def test_an_answer_lists_twenty_problems_and_counts_the_others(caller: Caller) -> None:
    unknown = {f"{number}" + "k" * 2000: 1 for number in range(60)}
    answer = caller.post(LIST, {**ENTRY, **unknown})
    details = answer.data["error"]["details"]
    assert len(details["problems"]) == 20
    assert details["more_problems"] == 40
    assert len(json.dumps(answer.data)) < 20_000


def test_a_key_that_is_not_for_callers_hides_no_other_mistake(caller: Caller) -> None:
    posted = {
        "name": "a",
        "cron": "x",
        "command": ["flush"],
        "runner": "process",
        "timezone": "EST",
        "nmae": "a",
        "options": {"timeout_ms": "soon", "priority": 3, "retry": {"max_attempts": "x"}},
    }
    details = caller.post(LIST, posted).data["error"]["details"]
    assert details["field"] == "command"
    told = " ".join(each["message"] for each in details["problems"])
    words = ("`command`", "`runner`", "`options.timeout_ms`", "EST", "nmae", "max_attempts")
    for word in (*words, "type is missing"):
        assert word in told
    assert not ScheduledTask.objects.exists()


def test_no_hint_names_a_key_that_is_for_settings(caller: Caller) -> None:
    wrong = [
        {"nmae": "a"},
        {"type": None},
        {"options": {"priority": 3, "memory_limit": 2**30}},
        {"retry_delay": 5},
        {"options": {"quue": 1}},
    ]
    for change in wrong:
        details = caller.post(LIST, {**ENTRY, **change}).data["error"]["details"]
        hints = [each["hint"] for each in details["problems"]]
        assert not [hint for hint in hints for key in FORBIDDEN if f'"{key}"' in hint]
        assert not [hint for hint in hints for key in FORBIDDEN if f"`{key}`" in hint]


# --- tasks of settings ---


def declare(**keys: Any) -> None:
    sim = Simulation(start=system_clock.now(), time_zone="UTC")
    entry = {"name": "daily", "cron": "0 9 * * *", "timezone": "UTC", "args": [7], **keys}
    sim.initialize([{**entry, "callback": "tests.http.reports.tasks.generate"}])


def test_a_task_of_settings_may_be_posted_as_it_is_and_not_changed(caller: Caller) -> None:
    declare(overlap_policy="coalesce")
    before = caller.get(ONE).data
    shown = before["cron_job"]
    assert shown["type"] == "tests.http.reports.tasks.generate"
    assert caller.post(LIST, shown).status == 200
    for refused in (
        caller.post(LIST, {**shown, "cron": "0 10 * * *"}),
        caller.post(LIST, {**shown, "args": []}),
        caller.patch(ONE, {"enabled": True}),
        caller.patch(ONE, {"enabled": False}),
        caller.delete(ONE),
    ):
        assert refused.code == OWNED
    assert caller.get(ONE).data == before
    assert ScheduledTask.objects.get().origin == "settings"
    assert not TaskOverride.objects.exists()


def test_secrets_of_settings_are_masked(caller: Caller) -> None:
    given = [{"api_key": "s3cret", "site": 7}]
    declare(args=given)
    for path in (LIST, ONE):
        assert "s3cret" not in str(caller.get(path).data)
    shown = caller.get(ONE).data["cron_job"]
    assert shown["args"][0]["site"] == 7
    assert caller.post(LIST, shown).status == 200
    assert caller.post(LIST, {**shown, "args": given}).status == 200
    other = [{"api_key": "another", "site": 7}]
    assert caller.post(LIST, {**shown, "args": other}).code == OWNED


def test_secrets_registered_over_http_are_masked(caller: Caller) -> None:
    options = {"meta": {"partner_token": "s3cret", "b": 1}, "queue": "default"}
    posted = {**ENTRY, "args": [{"api_key": "s3cret", "site": 7}], "options": options}
    for answer in (
        caller.post(LIST, posted),
        caller.get(LIST),
        caller.get(ONE),
        caller.patch(ONE, {"enabled": True}),
    ):
        assert answer.status in (200, 201)
        assert "s3cret" not in str(answer.data)
    shown = job_of(caller.get(ONE))
    assert (shown["args"][0]["site"], shown["options"]["meta"]["b"]) == (7, 1)
    # A mask in the request would replace the secret.
    for sent in ({**posted, "args": shown["args"]}, {**posted, "options": shown["options"]}):
        refused = caller.post(LIST, sent)
        assert refused.code == WRONG
        assert "a mask in place of a secret" in refused.data["error"]["message"]
    row = ScheduledTask.objects.get()
    assert row.declaration["args"][0]["api_key"] == "s3cret"
    assert caller.post(LIST, posted).status == 200
    assert "s3cret" not in str(caller.delete(ONE).data)


# --- switch, show, remove ---


@pytest.mark.requirement("002 CRON-28")
def test_a_disabled_task_has_no_next_run(caller: Caller) -> None:
    caller.post(LIST, ENTRY)
    off = job_of(caller.patch(ONE, {"enabled": False}))
    assert (off["enabled"], off["next_run_at"]) == (False, None)
    assert job_of(caller.get(ONE)) == off
    on = job_of(caller.patch(ONE, {"enabled": True}))
    assert (on["enabled"], on["next_run_at"] is None) == (True, False)


@pytest.mark.parametrize("body", [{}, {"enabled": 1}, {"enabled": None}, {"enabled": True, "a": 1}])
def test_switching_takes_one_truth(caller: Caller, body: dict[str, Any]) -> None:
    caller.post(LIST, ENTRY)
    assert caller.patch(ONE, body).code == WRONG


def test_a_removal_returns_the_task(caller: Caller) -> None:
    caller.post(LIST, ENTRY)
    answer = caller.delete(ONE)
    assert answer.status == 200
    assert (answer.data["deleted"], answer.data["name"]) == (True, "daily")
    assert answer.data["cron"]["expression"] == "0 9 * * *"
    assert caller.delete(ONE).code == ABSENT
    acts = TaskOverride.objects.values_list("kind", "task_name", "author", "note")
    assert list(acts) == [("remove", "daily", "token everything", "HTTP")]


@pytest.mark.requirement("002 CRON-27")
@pytest.mark.parametrize("name", ["nobody", "a/b", "ä b", "\0", "a" * 300, "%"])
def test_a_name_that_no_task_has_is_not_found(caller: Caller, name: str) -> None:
    path = f"/v1/cron/{quote(name, safe='')}"
    assert caller.get(path).code == ABSENT
    assert caller.delete(path).code == ABSENT
    assert caller.patch(path, {"enabled": True}).code == ABSENT


def test_names_of_settings_that_urls_must_quote_are_found(caller: Caller) -> None:
    sim = Simulation(start=system_clock.now(), time_zone="UTC")
    sim.initialize([("a/b ä?", "0 9 * * *", sim.job(), timedelta(minutes=5))])
    assert caller.get(f"/v1/cron/{quote('a/b ä?', safe='')}").data["cron_job"]["name"] == "a/b ä?"
    assert caller.get(f"/v1/cron/{quote('a/b ä?')}").status == 200


def test_the_next_run_is_the_retry_or_the_occurrence_before_it(caller: Caller) -> None:
    sim = Simulation(start="2024-01-01T10:00Z", time_zone="UTC")
    early, late = timedelta(minutes=5), timedelta(hours=2)
    fails = sim.job(outcomes=["fail"])
    sim.initialize([("early", "0 * * * *", fails, early), ("late", "0 * * * *", fails, late)])
    assert set(ScheduledTask.objects.values_list("failures", flat=True)) == {1}

    def next_run(name: str) -> str:
        return str(caller.get(f"/v1/cron/{name}").data["cron_job"]["next_run_at"])

    assert next_run("early") == "2024-01-01T10:05:00Z"
    assert next_run("late") == "2024-01-01T11:00:00Z"
    listed = caller.get(LIST).data
    shown = {each["name"]: each["next_run_at"] for each in listed["cron_jobs"]}
    assert shown == {"early": "2024-01-01T10:05:00Z", "late": "2024-01-01T11:00:00Z"}
    assert {each["name"]: each["next_run_at"] for each in listed["crons"]} == shown


def test_a_removed_task_is_distinguished_from_an_unknown_one(caller: Caller) -> None:
    sim = Simulation(start="2024-01-01T10:00Z", time_zone="UTC")
    sim.initialize([("a", "0 * * * *", sim.job(), timedelta(minutes=5))])
    sim.advance_to("2024-01-01T10:20Z")
    sim.initialize([])
    error = caller.get("/v1/cron/a").data["error"]
    assert error["message"] == "The task 'a' was removed; its history is kept."
    assert error["details"] == {
        "resource_type": "cron_job",
        "resource_id": "a",
        "removed_at": "2024-01-01T10:20:00Z",
        "last_run_at": "2024-01-01T10:00:00Z",
    }
    assert caller.get("/v1/cron/b").data["error"]["message"] == "No task is called 'b'."


# --- list ---


def test_the_list_has_both_envelopes_and_pages(caller: Caller) -> None:
    for letter in "cab":
        caller.post(LIST, {**ENTRY, "name": letter})
    caller.patch("/v1/cron/b", {"enabled": False})
    answer = caller.get(LIST)
    assert [job["name"] for job in answer.data["cron_jobs"]] == ["a", "b", "c"]
    assert [job["name"] for job in answer.data["crons"]] == ["a", "b", "c"]
    assert answer.data["count"] == 3
    whole = {"total": 3, "limit": 50, "has_more": False, "next_cursor": None}
    assert answer.data["pagination"] == whole
    first = caller.get("/v1/cron?limit=2").data
    assert ([job["name"] for job in first["cron_jobs"]], first["count"]) == (["a", "b"], 2)
    cursor = first["pagination"]["next_cursor"]
    second = caller.get(f"/v1/cron?limit=2&cursor={cursor}").data
    assert [job["name"] for job in second["cron_jobs"]] == ["c"]
    assert second["pagination"]["has_more"] is False


@pytest.mark.requirement("002 CRON-S06")
def test_the_list_can_be_filtered(caller: Caller) -> None:
    for letter in "abc":
        caller.post(LIST, {**ENTRY, "name": letter})
    caller.patch("/v1/cron/b", {"enabled": False})
    operator_actions.pause(["c"], Act(author="Ada", at=system_clock.now()))
    on = caller.get("/v1/cron?enabled=true").data
    off = caller.get("/v1/cron?enabled=false").data
    assert [job["name"] for job in on["cron_jobs"]] == ["a"]
    assert [job["name"] for job in off["cron_jobs"]] == ["b", "c"]
    assert {job["next_run_at"] for job in off["cron_jobs"]} == {None}
    assert off["pagination"]["total"] == 2


def test_a_tag_narrows_the_list(caller: Caller) -> None:
    for name, tags in (("a", ["x", "y"]), ("b", ["y"]), ("c", [])):
        caller.post(LIST, {**ENTRY, "name": name, "options": {"tags": tags}})
    for tag, names in (("y", ["a", "b"]), ("x", ["a"]), ("z", []), ("%00", [])):
        data = caller.get(f"/v1/cron?tag={tag}").data
        assert [job["name"] for job in data["cron_jobs"]] == names
        assert data["pagination"]["total"] == len(names)


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=101", "limit=-1", "limit=x", "limit=", "limit=٣", "enabled=yes"),
        *("cursor=%00", "cursor=***", "cursor=AA", "cursor=_w"),
    ],
)
def test_an_invalid_query_parameter_is_refused(caller: Caller, query: str) -> None:
    assert caller.get(f"/v1/cron?{query}").code == WRONG


def test_only_the_tasks_of_the_deployment_are_there(caller: Caller, settings: Any) -> None:
    caller.post(LIST, ENTRY)
    settings.DECLARATIVE_CRON = {"DEPLOYMENT": "other"}
    assert caller.get(LIST).code == (401, "unauthenticated")


RETRY = {"max_attempts": 3, "initial_interval": "PT1M", "backoff_coefficient": 2.0}
SPECIFIED: list[dict[str, Any]] = [
    {
        "name": "weekday-morning-report",
        "cron": "0 9 * * MON-FRI",
        "timezone": "America/New_York",
        "overlap_policy": "skip",
        "options": {
            "queue": "reports",
            "timeout": 600,
            "tags": ["reporting", "daily"],
            "retry": {**RETRY, "max_interval": "PT10M"},
        },
    },
    {"name": "cache-cleanup", "cron": "@hourly", "overlap_policy": "skip"},
    {
        "name": "external-data-sync",
        "cron": "*/30 * * * *",
        "overlap_policy": "enqueue",
        "options": {"meta": {"partner_id": "partner_001", "sync_version": "2"}},
    },
    {
        "name": "upstream-health-check",
        "cron": "@every 5m",
        "overlap_policy": "allow",
        "options": {"queue": "monitoring", "timeout": 30, "retry": {"max_attempts": 1}},
    },
    {
        "name": "monthly-billing",
        "cron": "0 23 L * *",
        "timezone": "America/Chicago",
        "overlap_policy": "cancel_previous",
    },
]


@pytest.mark.parametrize("entry", SPECIFIED, ids=lambda entry: entry["name"])
def test_the_example_of_the_specification_is_accepted_and_returned(
    caller: Caller, entry: dict[str, Any]
) -> None:
    posted = {"type": "report.generate", "args": [{"a": 1}], "options": {}, **entry}
    shown = job_of(caller.post(LIST, posted), 201)
    assert {key: shown[key] for key in posted} == posted
    assert shown["next_run_at"] is not None
    assert job_of(caller.post(LIST, shown)) == shown


def test_a_registration_returns_the_warnings_of_the_checks(caller: Caller) -> None:
    entry = {**ENTRY, "cron": "30 2 * * *", "timezone": "Europe/Berlin"}
    answer = caller.post(LIST, entry)
    assert answer.status == 201
    assert "declarative_cron.W005" in {each["id"] for each in answer.data["warnings"]}
