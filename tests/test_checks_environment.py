"""What is said of runners, libraries, databases and apps that the project has or lacks."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.db import connections

from django_declarative_cron import checks, django_tasks
from django_declarative_cron.runtime import forking
from django_declarative_cron.runtime.runners import fork_server_client

pytestmark = pytest.mark.usefixtures("still_clock")

HAS_TASKS = find_spec("django.tasks") or find_spec("django_tasks")
PACKAGE = "django.tasks" if find_spec("django.tasks") else "django_tasks"
ENGINES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": f"{PACKAGE}.backends.immediate.ImmediateBackend"},
    "nobody": {"BACKEND": f"{PACKAGE}.backends.dummy.DummyBackend", "QUEUES": ["mail", "reports"]},
    "plain": {"BACKEND": "tests.test_checks_environment.Plain"},
    "torn": {"BACKEND": "tests.callables.nowhere.Backend"},
}
needs_tasks = pytest.mark.skipif(not HAS_TASKS, reason="needs Tasks")

if HAS_TASKS:
    from importlib import import_module

    class Plain(import_module(f"{PACKAGE}.backends.base").BaseTaskBackend):  # type: ignore[misc]
        """An engine that knows neither priorities nor much else."""

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            """Be asked for nothing here."""
            raise NotImplementedError


def said(settings: Any, **keys: Any) -> list[tuple[str, str, str]]:
    callback = "tests.callables.jobs.send_mail"
    entry = {"name": "a", "cron": "0 * * * *", "timezone": "UTC", "callback": callback, **keys}
    settings.SCHEDULED_TASKS = [entry]
    found: list[CheckMessage] = run_checks(tags=[checks.TAG])
    return [(str(each.id).rpartition(".")[2], each.msg, each.hint or "") for each in found]


@needs_tasks
@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (
            {"backend": "elsewhere"},
            "TASKS has no backend 'elsewhere'",
            "It has 'default', 'nobody', 'plain', 'torn'.",
        ),
        (
            {"backend": "nobody", "queue": "report"},
            "the backend 'nobody' of TASKS has no queue 'report'",
            "It has 'mail', 'reports'; add to its QUEUES what a worker serves.",
        ),
        (
            {"queue": "reports"},
            "the backend 'default' of TASKS has no queue 'reports'",
            "It has 'default'; add to its QUEUES what a worker serves.",
        ),
        (
            {"backend": "plain", "priority": 3},
            "the backend 'plain' of TASKS does not take it:"
            " Backend does not support setting priority of tasks.",
            "Change `options`, or the backend.",
        ),
        (
            {"backend": "torn"},
            "the backend 'torn' of TASKS does not take it: Could not find backend"
            " 'tests.callables.nowhere.Backend': No module named 'tests.callables.nowhere'",
            "Change `options`, or the backend.",
        ),
    ],
)
def test_what_the_engine_would_refuse_is_an_error(
    settings: Any, options: dict[str, Any], message: str, hint: str
) -> None:
    settings.TASKS = ENGINES
    assert said(settings, runner="django_tasks", options=options) == [("E061", message, hint)]


@needs_tasks
@pytest.mark.parametrize(
    ("backend", "message"),
    [
        (
            "default",
            "the backend 'default' of TASKS is the immediate one,"
            " which calls runs in the scheduler itself",
        ),
        (
            "nobody",
            "the backend 'nobody' of TASKS is the dummy one, which keeps runs and calls none",
        ),
    ],
)
def test_a_backend_without_workers_is_a_warning(settings: Any, backend: str, message: str) -> None:
    settings.TASKS = ENGINES
    ((check, text, _),) = said(settings, runner="django_tasks", options={"backend": backend})
    assert (check, text) == ("W061", message)


@needs_tasks
def test_an_engine_with_workers_is_nothing_to_say(settings: Any) -> None:
    settings.TASKS = ENGINES
    assert said(settings, runner="django_tasks", options={"backend": "plain"}) == []


@needs_tasks
def test_a_task_of_django_is_asked_for_what_it_was_declared_with(settings: Any) -> None:
    settings.TASKS = {"default": {**ENGINES["plain"], "QUEUES": ["mail"]}}
    task = django_tasks.make_task(django_tasks._probe)
    asked = {"backend": "default", "queue_name": "mail", "priority": 0}
    assert django_tasks.asked_of_engine(django_tasks.DjangoTask(task), {}) == asked
    options = {"queue": "reports", "timeout": 3}
    found = django_tasks.asked_of_engine(django_tasks.DjangoTask(task), options)
    assert found == {**asked, "queue_name": "reports"}


def test_a_project_without_tasks_is_told_what_to_install(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(django_tasks, "_MODULES", ("tests.callables.nowhere",))
    ((check, message, hint),) = said(settings, runner="django_tasks")
    assert check == "E061"
    assert message.endswith("install django-declarative-cron[tasks], or take Django 6")
    assert hint == "Or choose another runner."


@pytest.mark.parametrize("keys", [{"runner": "process"}, {"options": {"timeout": 5}}])
def test_a_system_that_cannot_fork_is_a_warning(
    settings: Any, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any]
) -> None:
    monkeypatch.setattr(forking, "can_fork", lambda: False)
    ((check, message, hint),) = said(settings, **keys)
    assert (check, message) == (
        "W062",
        "its runs are called in processes, and this system cannot fork: here they fail",
    )
    assert hint == 'Write "runner": "thread", or run the scheduler on Linux or another Unix.'
    assert said(settings, runner="thread") == []


def test_a_run_on_a_system_that_cannot_fork_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forking, "can_fork", lambda: False)
    with pytest.raises(
        fork_server_client.ProcessesUnavailableError, match="this system cannot fork"
    ):
        fork_server_client.Server().call()


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


# --- databases and apps ---


@pytest.mark.parametrize(
    ("name", "is_reported"),
    [
        ("django_declarative_cron", True),
        ("django_declarative_cron.apps.DeclarativeCronConfig", True),
        ("shop", False),
    ],
)
def test_an_app_of_each_tenant_is_reported(name: str, is_reported: bool, settings: Any) -> None:
    settings.TENANT_APPS = [name]
    found = [each for each in checks.check_options() if each.id == "declarative_cron.W016"]
    assert len(found) == is_reported


@pytest.mark.parametrize(
    ("pool", "workers", "size"),
    [
        (True, 10, 4),
        ({"min_size": 2}, 10, 2),
        ({"max_size": 9}, 10, 9),
        ({"max_size": 10}, 10, None),
        (True, 4, None),
        (None, 10, None),
    ],
)
def test_a_pool_that_is_smaller_than_workers_is_reported(
    pool: Any, workers: int, size: int | None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DECLARATIVE_CRON = {"WORKERS": workers}
    monkeypatch.setitem(connections.settings["default"], "OPTIONS", {"pool": pool})
    found = [each for each in checks.check_options() if each.id == "declarative_cron.W015"]
    words = [each.msg.partition(",")[0] for each in found]
    assert words == ([] if size is None else [f"has {size} connections"])
