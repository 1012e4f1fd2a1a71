"""One table for every page and every act: who may, what is offered, what a direct POST does.

Whoever has exactly what the table names may; whoever has every other permission may not.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from django_declarative_cron.admin import actions
from django_declarative_cron.core.http_api import Right
from django_declarative_cron.models import AccessToken, ScheduledTask, TaskOverride, TaskRun
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.store import access_tokens

from ..process import run_python
from . import pages, rows
from .conftest import Login
from .rows import NOW
from .test_actions import READY, did

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


def objects(model: str) -> Any:
    return apps.get_model(pages.APP, model).objects


def test_the_table_has_every_page_there_is() -> None:
    for model, shown in PAGES.items():
        page = admin.site.get_model_admin(objects(model).model)
        names = {str(url.name) for url in page.get_urls() if url.name}
        known = {name.removeprefix(f"{pages.APP}_{model}_") for name in names}
        assert known == set(shown) | NEVER | ACTING.get(model, set()), model


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
    number = objects(model).count()
    assert root.get(url).status_code == root.post(url, {"post": "yes"}).status_code == 403
    assert objects(model).count() == number


@pytest.mark.parametrize("model", SEE)
def test_no_row_is_changed_by_hand(root: Client, model: str) -> None:
    row = ROW[model]()
    before = type(row).objects.values().get(pk=row.pk)
    changed = {"name": "other", "task_name": "other", "host": "other", "_save": "1"}
    assert root.post(pages.page(row), changed).status_code == 403
    assert type(row).objects.values().get(pk=row.pk) == before


@dataclass
class Act:
    """One thing that people do to a row, which ``ready`` makes."""

    needs: set[str]
    ready: Callable[[], Any]
    # Pages, and a mark on each for those who may.
    offered: Callable[[Any], list[tuple[str, str]]]
    # The direct POST, and its data.
    url: Callable[[Any], str]
    said: Callable[[Any], dict[str, Any]]
    did: Callable[[Any], bool]
    # The pages that ask before it is done, and the data posted to each, if it is a POST.
    asked: Callable[[Any], list[tuple[str, dict[str, Any] | None]]] = lambda row: []
    # Permissions that the data needs, and the page does not.
    besides: frozenset[str] = frozenset()


def of_tasks(key: str) -> Act:
    right = "skip_next" if key == "unskip" else key
    chosen = {"action": key, "index": 0}
    return Act(
        needs={TASKS, f"{right}_scheduledtask"},
        ready=lambda: rows.task(**READY[key]),
        offered=lambda task: [
            (pages.changelist(), rf'<option value="{key}"'),
            (pages.page(task), rf'href="[^"]*" class="[^"]*ddc-act-{key}"'),
        ],
        url=lambda task: pages.act(key),
        said=pages.confirmed,
        did=partial(did, key),
        asked=lambda task: [
            (pages.act(key, task), None),
            (pages.changelist(), {"_selected_action": task.pk, **chosen}),
        ],
    )


def cancel_url(run: TaskRun) -> str:
    return reverse(f"admin:{pages.APP}_taskrun_cancel", args=[run.pk])


ACTS: dict[str, Act] = {
    **{key: of_tasks(key) for key in actions.ACTIONS},
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


def refuses(client: Client, act: Act, row: Any) -> None:
    assert asking(client, act, row) <= {403}
    assert client.post(act.url(row), act.said(row)).status_code == 403
    row.refresh_from_db()
    assert not act.did(row)
    assert not TaskOverride.objects.exists()
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(("name", "missing"), CASES)
def test_whoever_may_not_is_not_offered_it_and_cannot(
    login: Login, name: str, missing: str
) -> None:
    act = ACTS[name]
    row, client = act.ready(), login(*everything_but(missing))
    assert offers(client, act, row) == {False}
    if missing not in ONLY_OFFERED.get(name, set()):
        refuses(client, act, row)


@pytest.mark.alike
@pytest.mark.parametrize("name", ACTS)
def test_p47_where_the_project_lets_nobody_act_the_pages_only_show(
    root: Client, settings: Any, name: str
) -> None:
    act = ACTS[name]
    row = act.ready()
    settings.DECLARATIVE_CRON = {"ADMIN_ACTIONS": False}
    assert offers(root, act, row) == {False}
    refuses(root, act, row)
    assert {root.get(url).status_code for url, _ in act.offered(row)} == {200}


@pytest.mark.requirement("003 Error Handling/2")
def test_an_attempt_without_permission_is_logged_and_changes_nothing(
    login: Login, caplog: pytest.LogCaptureFixture
) -> None:
    task = rows.task()
    client = login("view_scheduledtask")
    with caplog.at_level(logging.WARNING, logger="django.request"):
        refused = client.post(pages.act("pause"), pages.confirmed(task))
    assert refused.status_code == 403
    [record] = [each for each in caplog.records if each.name == "django.request"]
    assert "Forbidden" in record.getMessage()
    assert "/scheduledtask/act/pause/" in record.getMessage()
    assert not TaskOverride.objects.exists()


MODELS = ("scheduledtask", "taskrun", "schedulerinstance")
NO_KEYS = ["x", "", "\x00", str(10**30), f"-{10**30}", "9" * 5000]


@pytest.mark.parametrize("key", NO_KEYS, ids=lambda key: repr(key[:12]))
@pytest.mark.parametrize("model", MODELS)
def test_an_action_on_what_can_be_no_row_says_so(root: Client, model: str, key: str) -> None:
    address = f"/admin/django_declarative_cron/{model}/"
    posted = {"action": "pause", "_selected_action": [key, str(rows.task().pk)]}
    answer = root.post(address, posted, follow=True)
    assert answer.redirect_chain == [(address, 302)]
    assert "contains an invalid key" in answer.content.decode()
    assert not TaskOverride.objects.exists()


@pytest.mark.parametrize(
    "page", ["?id__in={},1", "?id={}", "{}/change/", "{}/history/", "?p={}", "act/pause/?task={}"]
)
@pytest.mark.parametrize("key", NO_KEYS[3:], ids=lambda key: key[:12])
def test_an_address_of_what_can_be_no_row_is_answered(root: Client, page: str, key: str) -> None:
    rows.task()
    address = f"/admin/django_declarative_cron/scheduledtask/{page.format(key)}"
    assert root.get(address, follow=True).status_code == 200


@pytest.mark.slow
def test_users_with_a_uuid_and_without_a_name_are_written_down(
    project_environment: dict[str, str],
) -> None:
    """P96."""
    settings = {"DJANGO_SETTINGS_MODULE": "tests.admin.strangers"}
    environment = {**project_environment, **settings}
    done = run_python("-m", "tests.admin.strangers.pause", env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "status": 302,
        "page": 200,
        "author": "badge 42",
        "key": True,
        "entry": True,
    }


ADD = "admin:django_declarative_cron_accesstoken_add"
LIST = "admin:django_declarative_cron_accesstoken_changelist"
FORM = {"name": "ci", "rights": ["read", "work"], "expires_at": ""}


def test_a_token_is_shown_once_and_works(root: Client) -> None:
    page = root.post(reverse(ADD), FORM)
    (made,) = re.findall(r"ddc_[0-9a-f]{12}_[\w-]{43}", page.content.decode())
    assert "no-store" in page["Cache-Control"]
    row = access_tokens.bearer(made, system_clock.now())
    assert row is not None
    assert (row.name, access_tokens.rights_of(row)) == ("ci", {Right.READ, Right.WORK})
    assert row.author == "root"
    assert made[-43:] not in root.get(reverse(LIST)).content.decode()
    assert LogEntry.objects.get().object_repr == "ci"


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": "a\x00"}, {"rights": ["fly"]}, {"expires_at": "2001-01-01"}]
)
def test_a_form_with_a_mistake_makes_nothing(root: Client, wrong: dict[str, Any]) -> None:
    page = root.post(reverse(ADD), FORM | wrong)
    assert page.status_code == 200
    assert "errornote" in page.content.decode()
    assert not AccessToken.objects.exists()


def test_a_name_is_given_once(root: Client) -> None:
    root.post(reverse(ADD), FORM)
    assert "errornote" in root.post(reverse(ADD), FORM).content.decode()
    assert AccessToken.objects.count() == 1


def test_revoking_asks_first(root: Client) -> None:
    access_tokens.create("ci", [Right.READ], system_clock.now())
    access_tokens.create("cd", [Right.READ], system_clock.now())
    row = AccessToken.objects.get(name="ci")
    chosen = {"action": "revoke", "_selected_action": [row.pk]}
    page = root.post(reverse(LIST), chosen).content.decode()
    assert "Revoke these tokens?" in page
    assert "<li>ci</li>" in page
    assert "<li>cd</li>" not in page
    assert not AccessToken.objects.exclude(revoked_at=None).exists()
    sent = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]+)"', page))
    assert sent.items() >= {"action": "revoke", "_selected_action": str(row.pk)}.items()
    root.post(reverse(LIST), sent)
    assert list(AccessToken.objects.exclude(revoked_at=None)) == [row]
    assert LogEntry.objects.get().object_repr == "ci"


def test_a_person_grants_only_rights_that_they_hold(login: Callable[..., Client]) -> None:
    assert 'name="rights"' not in login("add_accesstoken").get(reverse(ADD)).content.decode()
    reader = login("add_accesstoken", "view_scheduledtask")
    page = reader.get(reverse(ADD)).content.decode()
    assert re.findall(r'name="rights" value="(\w+)"', page) == ["read"]
    assert "You can grant only the rights that you have." in page
    for asked in (["read", "work"], ["register"]):
        refused = reader.post(reverse(ADD), FORM | {"rights": asked}).content.decode()
        assert "errornote" in refused
    assert not AccessToken.objects.exists()
    reader.post(reverse(ADD), FORM | {"rights": ["read"]})
    assert access_tokens.rights_of(AccessToken.objects.get()) == {Right.READ}
