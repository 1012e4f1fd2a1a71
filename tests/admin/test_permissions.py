"""One table for every page and every act: who may, what is offered, what a direct POST does.

Whoever has exactly what the table names may; whoever has every other permission may not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from django_declarative_cron import models
from django_declarative_cron.admin import actions
from django_declarative_cron.models import AccessToken, ScheduledTask, TaskOverride, TaskRun

from . import pages, rows
from .conftest import Login
from .rows import NOW

SEE = {name: f"view_{name}" for name in ("scheduledtask", "taskrun", "taskoverride")}
SEE |= {name: f"view_{name}" for name in ("schedulerinstance", "accesstoken")}
TASKS, RUNS, TOKENS = SEE["scheduledtask"], SEE["taskrun"], SEE["accesstoken"]

# The pages of each model by the last word of their names, with what one needs to see them.
PAGES: dict[str, dict[str, set[str]]] = {
    model: {page: {view} for page in ("changelist", "change", "history")}
    for model, view in SEE.items()
}
for page in ("live_list", "live_page"):
    PAGES["scheduledtask"][page] = {TASKS}
    PAGES["schedulerinstance"][page] = {SEE["schedulerinstance"]}
    PAGES["taskrun"][page] = {RUNS}
PAGES["scheduledtask"] |= {page: {TASKS} for page in ("calendar", "expression", "timeline")}
PAGES["accesstoken"]["add"] = {"add_accesstoken"}
# Nobody may, whatever they have.
NEVER = {"add", "delete"}
# Asked for with an act, below.
ACTING = {"scheduledtask": {"act"}, "taskrun": {"cancel"}, "schedulerinstance": {"notify"}}

ROW: dict[str, Callable[[], Any]] = {
    "scheduledtask": rows.task,
    "taskrun": rows.run,
    "taskoverride": rows.act,
    "schedulerinstance": rows.instance,
    "accesstoken": lambda: AccessToken.objects.create(
        scheduler=rows.deployment(), name="a", key="a" * 8, digest="0" * 64, created_at=NOW
    ),
}


def address(model: str, page: str) -> str:
    row = ROW[model]()
    keys = [row.pk] if page in ("change", "history", "delete", "live_page") else []
    return reverse(f"admin:{pages.APP}_{model}_{page}", args=keys)


def everything_but(codename: str) -> list[str]:
    ours = Permission.objects.filter(content_type__app_label=pages.APP)
    return [found for found in ours.values_list("codename", flat=True) if found != codename]


def test_the_table_has_every_page_there_is() -> None:
    for model, shown in PAGES.items():
        page = admin.site.get_model_admin(getattr(models, dict(NAMES)[model]))
        names = {str(url.name) for url in page.get_urls() if url.name}
        known = {name.removeprefix(f"{pages.APP}_{model}_") for name in names}
        assert known == set(shown) | NEVER | ACTING.get(model, set()), model


NAMES = [
    ("scheduledtask", "ScheduledTask"),
    ("taskrun", "TaskRun"),
    ("taskoverride", "TaskOverride"),
    ("schedulerinstance", "SchedulerInstance"),
    ("accesstoken", "AccessToken"),
]
CELLS = [(model, page) for model, shown in PAGES.items() for page in shown]


@pytest.mark.parametrize(("model", "page"), CELLS)
def test_a_page_is_seen_by_those_who_may_and_by_nobody_else(
    login: Login, model: str, page: str
) -> None:
    url, needs = address(model, page), PAGES[model][page]
    assert login(*needs).get(url).status_code == 200
    for missing in needs:
        assert login(*everything_but(missing)).get(url).status_code == 403
    assert "/login/" in Client().get(url).headers["location"]


FORBIDDEN = [(model, page) for model, shown in PAGES.items() for page in sorted(NEVER - set(shown))]


@pytest.mark.parametrize(("model", "page"), FORBIDDEN)
def test_what_nobody_may_is_refused_whoever_asks(root: Client, model: str, page: str) -> None:
    url = address(model, page)
    number = getattr(models, dict(NAMES)[model]).objects.count()
    assert root.get(url).status_code == root.post(url, {"post": "yes"}).status_code == 403
    assert getattr(models, dict(NAMES)[model]).objects.count() == number


@pytest.mark.parametrize("model", SEE)
def test_no_row_is_changed_by_hand(root: Client, model: str) -> None:
    row = ROW[model]()
    before = type(row).objects.values().get(pk=row.pk)
    changed = {"name": "other", "task_name": "other", "host": "other", "_save": "1"}
    assert root.post(pages.page(row), changed).status_code == 403
    assert type(row).objects.values().get(pk=row.pk) == before


@dataclass
class Act:
    """One thing that people do.

    Args:
        needs: the permissions.
        ready: makes the row that it is done to.
        offered: a page and what stands on it for those who may.
        url: of the direct POST.
        said: with it.
        did: tells from the row whether it was done.
        asked: of the page that asks before it is done: addresses, and what is posted there.
        besides: permissions that what is said needs, and the page does not.
    """

    needs: set[str]
    ready: Callable[[], Any]
    offered: Callable[[Any], list[tuple[str, str]]]
    url: Callable[[Any], str]
    said: Callable[[Any], dict[str, Any]]
    did: Callable[[Any], bool]
    asked: Callable[[Any], list[tuple[str, dict[str, Any] | None]]] = lambda row: []
    besides: frozenset[str] = frozenset()


def of_tasks(
    key: str, did: Callable[[ScheduledTask], bool], *, right: str = "", **state: Any
) -> Act:
    menu = key
    return Act(
        needs={TASKS, f"{right or key}_scheduledtask"},
        ready=lambda: rows.task(**state),
        offered=lambda task: [
            (pages.changelist(), rf'<option value="{menu}"'),
            (pages.page(task), rf'href="[^"]*" class="[^"]*ddc-act-{key}"'),
        ],
        url=lambda task: pages.act(key),
        said=lambda task: pages.confirmed(task),
        did=did,
        asked=lambda task: [
            (pages.act(key, task), None),
            (pages.changelist(), {"action": menu, "_selected_action": task.pk, "index": 0}),
        ],
    )


def cancel_url(run: TaskRun) -> str:
    return reverse(f"admin:{pages.APP}_taskrun_cancel", args=[run.pk])


ACTS: dict[str, Act] = {
    "run": of_tasks("run", lambda task: task.run_requested_at is not None),
    "pause": of_tasks("pause", lambda task: task.paused_since is not None),
    "resume": of_tasks("resume", lambda task: task.paused_since is None, paused_since=NOW),
    "skip_next": of_tasks(
        "skip_next", lambda task: TaskOverride.objects.filter(task_name=task.name).exists()
    ),
    "unskip": of_tasks(
        "unskip",
        lambda task: task.skip_at is None,
        right="skip_next",
        skip_at=NOW.replace(hour=11, minute=0, second=0),
    ),
    "retry_now": of_tasks(
        "retry_now",
        lambda task: task.run_requested_at is not None,
        pending_retry_until=NOW + timedelta(minutes=5),
    ),
    "clear_retry": of_tasks(
        "clear_retry",
        lambda task: task.pending_retry_until is None,
        pending_retry_until=NOW + timedelta(minutes=5),
    ),
    "run again": Act(
        needs={TASKS, RUNS, "run_scheduledtask"},
        ready=lambda: (rows.task(), rows.run())[1],
        offered=lambda run: [(pages.page(run), "ddc-act-run")],
        url=lambda run: pages.act("run"),
        said=lambda run: pages.confirmed(ScheduledTask.objects.get()),
        did=lambda run: ScheduledTask.objects.get().run_requested_at is not None,
    ),
    "cancel": Act(
        needs={RUNS, "cancel_taskrun"},
        ready=lambda: rows.run(outcome="running", finished_at=None),
        offered=lambda run: [(pages.page(run), "ddc-act-cancel")],
        url=cancel_url,
        said=lambda run: {"note": ""},
        did=lambda run: run.cancel_requested_at is not None,
        asked=lambda run: [(cancel_url(run), None)],
    ),
    "revoke": Act(
        needs={TOKENS, "revoke_accesstoken"},
        ready=ROW["accesstoken"],
        offered=lambda token: [(pages.changelist("accesstoken"), '<option value="revoke"')],
        url=lambda token: pages.changelist("accesstoken"),
        said=lambda token: {
            "action": "revoke",
            "_selected_action": token.pk,
            "index": 0,
            "confirmed": "yes",
        },
        did=lambda token: token.revoked_at is not None,
    ),
    "make a token": Act(
        needs={TOKENS, "add_accesstoken"},
        # Only rights that a user holds can be granted.
        besides=frozenset({TASKS}),
        ready=lambda: rows.deployment(),
        offered=lambda state: [(pages.changelist("accesstoken"), '/accesstoken/add/" class="addl')],
        url=lambda state: reverse(f"admin:{pages.APP}_accesstoken_add"),
        said=lambda state: {"name": "deploy", "rights": ["read"]},
        did=lambda state: AccessToken.objects.filter(name="deploy").exists(),
    ),
}


def test_the_table_has_every_act_there_is() -> None:
    assert actions.ACTIONS.keys() <= ACTS.keys()


# A person needs to see runs to be offered another one, and not to ask for it.
ONLY_OFFERED = {"run again": {RUNS}, "make a token": {TOKENS}}


def offers(client: Client, act: Act, row: Any) -> set[bool]:
    found = set()
    for url, mark in act.offered(row):
        response = client.get(url)
        seen = response.status_code == 200
        found.add(seen and re.search(mark, response.content.decode()) is not None)
    return found


def asking(client: Client, act: Act, row: Any) -> set[int]:
    return {
        (client.get(url) if data is None else client.post(url, data)).status_code
        for url, data in act.asked(row)
    }


@pytest.mark.parametrize("name", ACTS)
def test_whoever_may_is_offered_it_and_does_it(login: Login, name: str) -> None:
    act = ACTS[name]
    row, client = act.ready(), login(*act.needs, *act.besides)
    assert offers(client, act, row) == {True}
    assert asking(client, act, row) <= {200}
    row.refresh_from_db()
    assert not act.did(row)
    assert client.post(act.url(row), act.said(row)).status_code in (200, 302)
    row.refresh_from_db()
    assert act.did(row)
    # Each is written down where Django keeps what people did.
    assert LogEntry.objects.count() == 1


CASES = [(name, missing) for name, act in ACTS.items() for missing in sorted(act.needs)]


@pytest.mark.parametrize(("name", "missing"), CASES)
def test_whoever_may_not_is_not_offered_it_and_cannot(
    login: Login, name: str, missing: str
) -> None:
    act = ACTS[name]
    row, client = act.ready(), login(*everything_but(missing))
    assert offers(client, act, row) == {False}
    if missing in ONLY_OFFERED.get(name, set()):
        return
    assert asking(client, act, row) <= {403}
    assert client.post(act.url(row), act.said(row)).status_code == 403
    row.refresh_from_db()
    assert not act.did(row)
    assert not TaskOverride.objects.exists()
    assert not LogEntry.objects.exists()


@pytest.mark.alike
@pytest.mark.parametrize("name", ACTS)
def test_p47_where_the_project_lets_nobody_act_the_pages_only_show(
    root: Client, settings: Any, name: str
) -> None:
    act = ACTS[name]
    row = act.ready()
    settings.DECLARATIVE_CRON = {"ADMIN_ACTIONS": False}
    assert offers(root, act, row) == {False}
    assert asking(root, act, row) <= {403}
    assert root.post(act.url(row), act.said(row)).status_code == 403
    row.refresh_from_db()
    assert not act.did(row)
    assert not TaskOverride.objects.exists()
    assert not LogEntry.objects.exists()
    assert {root.get(url).status_code for url, _ in act.offered(row)} == {200}
