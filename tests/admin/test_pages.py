"""All pages: other sites, settings, policies, languages, and the last instant there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import django
import pytest
from django.apps import apps
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import translation

from django_declarative_cron.core.http_api import Right
from django_declarative_cron.fields import InstantField
from django_declarative_cron.management.commands.cron import Command
from django_declarative_cron.models import AccessToken
from django_declarative_cron.store import access_tokens

from . import pages, rows
from .conftest import Login
from .pages import text
from .rows import NOW
from .test_actions import READY


def test_acts_are_listed_with_author_and_note(root: Client) -> None:
    act = rows.act(note="stocktaking")
    assert "stocktaking" in text(root.get(pages.changelist("taskoverride")))
    assert "stocktaking" in text(root.get(pages.page(act)))


def test_who_may_not_see_runs_gets_no_way_to_them(login: Login) -> None:
    task, run = rows.task(), rows.run()
    html = login("view_scheduledtask").get(pages.page(task)).content.decode()
    assert "succeeded" in html
    assert pages.page(run) not in html
    assert pages.changelist("taskrun") + "?" not in html


@pytest.mark.parametrize("site", ["operations", "bare"])
def test_pages_work_on_other_admin_sites(root: Client, site: str) -> None:
    task, run = rows.task(), rows.run()
    html = root.get(pages.page(task, site)).content.decode()
    addresses = re.findall(r'href="(/[^"]*)"', html)
    prefix = reverse(f"{site}:index")
    ours = (prefix, "/static/", "/i18n/")
    assert {each for each in addresses if not each.startswith(ours)} == {"/"}
    assert (pages.page(run, "operations") in html) == (site == "operations")
    asked = root.get(pages.act("pause", task, site=site)).content.decode()
    assert f'action="{prefix}' in asked
    done = root.post(pages.act("pause", site=site), pages.confirmed(task))
    assert done.headers["location"] == pages.changelist(site=site)


def test_a_projects_own_pages_of_our_models_are_whole(root: Client) -> None:
    task, run, instance = rows.task(), rows.run(), rows.instance()
    for row in (task, run, instance):
        name = row._meta.model_name
        assert root.get(pages.changelist(name, site="plain")).status_code == 200
        shown = text(root.get(pages.page(row, site="plain")))
        # Nothing is said that these pages do not know.
        for absent in ("It has not run yet", "Why?", "Nothing is running in it", "Calendar"):
            assert absent not in shown


@pytest.mark.parametrize("use_tz", [True, False])
def test_instants_are_right_with_and_without_use_tz(
    root: Client, settings: Any, use_tz: bool
) -> None:
    settings.USE_TZ = use_tz
    settings.TIME_ZONE = "Europe/Berlin"
    task = rows.task(last_attempt_at=NOW, timezone="America/New_York")
    run = rows.run()
    rows.act()
    assert "in 59 min 12:00" in text(root.get(pages.changelist()))
    shown = text(root.get(pages.page(task)))
    assert "2026-11-28 11:00:30 CET" in shown
    assert "2026-11-28 12:00 CET in 59 min" in shown
    assert "2026-11-28 10:50:30 CET" in shown
    assert "2026-11-28 11:02 CET" in text(root.get(pages.page(run)))
    assert "2026-11-28 11:00 CET" in text(root.get(pages.changelist("taskrun")))


class Inline(HTMLParser):
    """Collect what a strict content security policy refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "style" or (tag == "script" and "src" not in given):
            self.found.append(self.get_starttag_text() or tag)
        if any(name == "style" or name.startswith("on") for name in given):
            self.found.append(self.get_starttag_text() or tag)
        for name in ("src", "href"):
            if (given.get(name) or "").startswith(("http:", "https:", "//", "javascript:")):
                self.found.append(self.get_starttag_text() or tag)


def inline(response: Any) -> list[str]:
    parser = Inline()
    parser.feed(response.content.decode())
    return parser.found


def test_every_page_is_clean_under_a_strict_policy_and_has_our_style_sheet(root: Client) -> None:
    """P97. A theme has inline parts of its own; ours adds none to those of Django's pages."""
    usual: set[str] = set()
    if apps.is_installed("admin_interface"):
        usual |= set(inline(root.get(reverse("admin:auth_group_changelist"))))
        usual |= set(inline(root.get(reverse("admin:auth_group_add"))))
    assert finders.find("django_declarative_cron/admin.css")
    for address in _every_page():
        response = root.get(address)
        assert set(inline(response)) <= usual, address
        html = response.content.decode()
        assert "django_declarative_cron/admin.css" in html, address
        assert ("admin-interface" in html) == apps.is_installed("admin_interface"), address


def _every_page() -> list[str]:
    task = rows.task(paused_since=NOW, pending_retry_until=NOW)
    run = rows.run(outcome="failed", error="x", traceback="y")
    act, host = rows.act(note="z"), rows.instance()
    return [
        pages.changelist(),
        pages.page(task),
        *(pages.act(key, task) for key in ("run", "pause", "resume", "skip_next", "clear_retry")),
        *(pages.changelist(m) for m in ("taskrun", "taskoverride", "schedulerinstance")),
        *(pages.page(row) for row in (run, act, host)),
    ]


@pytest.fixture
def policy(settings: Any) -> Any:
    """Let Django send a policy of content security; give the settings."""
    middleware = "django.middleware.csp.ContentSecurityPolicyMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, middleware]
    return settings


@pytest.mark.skipif(django.VERSION < (6, 0), reason="Django has the policy since 6.0")
def test_pages_are_served_under_the_policy_of_django(root: Client, policy: Any) -> None:
    policy.SECURE_CSP = {"default-src": ["'self'"]}
    response = root.get(pages.page(rows.task()))
    assert response.headers["content-security-policy"] == "default-src 'self'"
    assert "django_declarative_cron/admin.css" in response.content.decode()


@pytest.mark.skipif(django.VERSION < (6, 1), reason="the admin has nonces since Django 6.1")
def test_our_style_sheet_bears_the_nonce_of_the_policy(root: Client, policy: Any) -> None:
    policy.SECURE_CSP = {"style-src": ["<CSP_NONCE_SENTINEL>"]}
    policy.TEMPLATES = deepcopy(policy.TEMPLATES)
    nonces = "django.template.context_processors.csp"
    policy.TEMPLATES[0]["OPTIONS"]["context_processors"].append(nonces)
    for address in _every_page():
        html = root.get(address).content.decode()
        ours = re.findall(r"<link[^>]*django_declarative_cron/admin.css[^>]*>", html)
        assert ours and all(" nonce=" in link for link in ours), address


@pytest.fixture(autouse=True)
def _back_to_the_language_before() -> Iterator[None]:
    """Forget the language that the middleware chose for the thread."""
    with translation.override(translation.get_language()):
        yield


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("de", ["Warum?", "wartet auf ihre Wiederholung um", "Nächste Vorkommen"]),
        ("fr", ["Pourquoi ?", "attend sa nouvelle tentative", "Prochaines occurrences"]),
        ("es", ["¿Por qué?", "espera su reintento a las", "Próximas ocurrencias"]),
        ("uk", ["Чому?", "чекає на повторну спробу", "Наступні події"]),
    ],
)
def test_a_task_is_told_in_the_language_of_its_reader(
    root: Client, language: str, words: list[str]
) -> None:
    rows.instance()
    task = rows.task(pending_retry_until=NOW + timedelta(minutes=5), discharged_at=NOW)
    shown = text(root.get(pages.page(task), headers={"accept-language": language}))
    assert [word for word in words if word.casefold() not in shown.casefold()] == []


@pytest.mark.parametrize("language", ["de", "fr", "es", "uk"])
def test_every_page_is_shown_in_every_language(root: Client, language: str) -> None:
    for address in _every_page():
        assert root.get(address, headers={"accept-language": language}).status_code == 200


# --- rows with the last instant there is: no zone east of UTC can show it ---------

LAST = datetime.max.replace(tzinfo=UTC)
SHOWN = "9999-12-31 23:59:59 UTC"


def said(words: str) -> str:
    out = StringIO()
    call_command(Command(stdout=out, stderr=out), *words.split())
    return out.getvalue()


@pytest.fixture
def last_rows(settings: Any, db: None) -> list[Model]:
    """Return a row of each model, whose every instant is the last."""
    settings.TIME_ZONE = "Pacific/Kiritimati"
    access_tokens.create("t", list(Right), rows.NOW)
    found = [rows.task(), rows.run(), rows.instance(), rows.act(until=LAST)]
    found.append(AccessToken.objects.get())
    for row in found:
        for each in row._meta.fields:
            if isinstance(each, InstantField):
                setattr(row, each.name, LAST)
        row.save()
    rows.run(outcome="failed")
    return found


def test_the_admin_shows_it_in_utc(root: Client, last_rows: list[Model]) -> None:
    for row in last_rows:
        for address in (pages.changelist(row._meta.model_name), pages.page(row)):
            response = root.get(address)
            assert response.status_code == 200
            assert SHOWN in response.content.decode(), address
    plain = [
        reverse(f"admin:{pages.APP}_scheduledtask_{name}") for name in ("timeline", "calendar")
    ]
    acts = [pages.act(key, last_rows[0]) for key in READY]
    for address in (*plain, *acts):
        assert root.get(address).status_code == 200


@pytest.mark.parametrize("words", ["show", "show --format json", "explain", "next"])
def test_commands_show_a_task_in_utc(last_rows: list[Model], words: str) -> None:
    assert SHOWN in said(f"{words} digest")


@pytest.mark.parametrize("words", ["history", "verify", "token list"])
def test_commands_show_other_rows_in_utc(last_rows: list[Model], words: str) -> None:
    assert SHOWN in said(words)
