"""Runs, acts and scheduler instances; other sites, settings and policies."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import django
import pytest
from django.apps import apps
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse

from django_declarative_cron.admin import base, filters
from django_declarative_cron.models import TaskRun

from . import pages, rows
from .conftest import LIMITING, Login
from .rows import NOW

Words = Callable[[Any], str]


def shown_names(response: Any) -> list[str]:
    html = response.content.decode()
    return re.findall(r'class="field-task_name[^"]*"><a[^>]*><span[^>]*>([^<]*)</span></a>', html)


def test_runs_are_listed_newest_first_and_narrowed(root: Client) -> None:
    rows.run("a")
    rows.run("b", outcome="failed", reason="retry")
    rows.run("a", outcome="missed", reason="no_scheduler", attempt=0)

    def names(query: str = "") -> list[str]:
        return shown_names(root.get(pages.changelist("taskrun", query)))

    assert names() == ["a", "b", "a"]
    assert names("?outcome__exact=failed") == ["b"]
    assert names("?reason=no_scheduler") == ["a"]
    assert names("?q=b") == ["b"]
    assert names("?task_name__exact=a") == ["a", "a"]


def test_the_run_history_is_counted_to_a_bound_and_sorted_by_key_only(
    root: Client, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    monkeypatch.setattr(base, "DEEPEST_ROW", 5)
    rows.instance()
    for number in range(8):
        rows.run("a", scheduled_for=NOW + timedelta(minutes=number))
    root.get(pages.changelist("taskrun"))
    with django_assert_max_num_queries(5 + LIMITING) as queries:
        response = root.get(pages.changelist("taskrun", "?o=2"))
    assert response.context["cl"].result_count == 5
    asked = [q["sql"].replace("`", '"') for q in queries.captured_queries if "taskrun" in q["sql"]]
    counts = [sql for sql in asked if "COUNT" in sql]
    assert counts and all("LIMIT 5" in sql for sql in counts)
    # With an order or an instance beside it, a count reads far more than the index.
    assert not any(" ORDER BY " in sql or "schedulerinstance" in sql for sql in counts)
    assert all(" ORDER BY " not in sql or 'taskrun"."id" DESC' in sql for sql in asked)


@pytest.mark.parametrize(("language", "groups"), [("en", False), ("en", True), ("de", True)])
def test_a_history_that_was_not_counted_to_its_end_says_so(
    root: Client, text: Words, monkeypatch: Any, settings: Any, language: str, groups: bool
) -> None:
    settings.LANGUAGE_CODE, settings.USE_THOUSAND_SEPARATOR = language, groups
    monkeypatch.setattr(base, "DEEPEST_ROW", 1000)
    rows.task("a")
    seed = rows.run("a")
    same = {"scheduler": seed.scheduler, "task_name": "a", "reason": "due", "attempt": 1}
    of_an_instant = {"scheduled_for": seed.scheduled_for, "outcome": "succeeded"}
    runs, results = {"en": ("runs", "results"), "de": ("Läufe", "Ergebnisse")}[language]
    for most, number in ((999, "999"), (1001, "1,000+" if language == "en" else "1.000+")):
        missing = most - TaskRun.objects.count()
        TaskRun.objects.bulk_create(TaskRun(**same, **of_an_instant) for _ in range(missing))
        assert f" {number} {runs}" in text(root.get(pages.changelist("taskrun")))
        assert f" {number} {results}" in text(root.get(pages.changelist("taskrun", "?q=a")))


def test_a_reason_is_looked_for_among_the_newest_runs(
    root: Client, text: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "_NEWEST", 2)
    rows.run("old", reason="boot")
    rows.run("a", outcome="missed", reason="no_scheduler", attempt=0)
    for name, reason in (("b", "boot"), ("c", "due")):
        rows.run(name, reason=reason)

    def names(reason: str) -> list[str]:
        return shown_names(root.get(pages.changelist("taskrun", f"?reason={reason}")))

    assert [names(reason) for reason in ("boot", "due", "no_scheduler")] == [["b"], ["c"], []]
    monkeypatch.setattr(filters, "_NEWEST", 4)
    assert [names(reason) for reason in ("boot", "no_scheduler")] == [["b", "old"], ["a"]]
    assert "By reason, in the newest 100,000 rows" in text(root.get(pages.changelist("taskrun")))


def test_a_run_shows_its_traceback_and_the_way_to_its_task(root: Client, text: Words) -> None:
    task = rows.task()
    run = rows.run(
        outcome="failed",
        error="ValueError: a < b",
        traceback='Traceback:\n  File "x.py", line 1\nValueError: a < b',
        instance=rows.instance(),
    )
    response = root.get(pages.page(run))
    html = response.content.decode()
    assert re.search(
        r"<pre[^>]*>Traceback:\n  File &quot;x.py&quot;, line 1\nValueError: a &lt; b</pre>", html
    )
    assert "✖ failed" in text(response)
    assert "worker:4711" in text(response)
    assert pages.page(task) in html


def test_a_run_outlives_its_task(root: Client) -> None:
    run = rows.run("gone", traceback="")
    response = root.get(pages.page(run))
    assert response.status_code == 200
    assert "ddc-task" not in response.content.decode()
    assert "ddc-traceback" not in response.content.decode()


def test_acts_are_listed_with_author_and_note(root: Client, text: Words) -> None:
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


def test_a_projects_own_pages_of_our_models_are_whole(root: Client, text: Words) -> None:
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
    root: Client, settings: Any, text: Words, use_tz: bool
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


@pytest.mark.skipif(
    apps.is_installed("admin_interface"), reason="the theme has inline parts of its own"
)
def test_pages_are_clean_under_a_strict_content_security_policy(root: Client) -> None:
    """P97."""
    for address in _every_page():
        assert inline(root.get(address)) == [], address


def test_our_templates_add_nothing_inline(root: Client) -> None:
    """With a theme: whatever is inline stands on a page of Django's own as well."""
    usual = set(inline(root.get(reverse("admin:auth_group_changelist"))))
    usual |= set(inline(root.get(reverse("admin:auth_group_add"))))
    for address in _every_page():
        assert set(inline(root.get(address))) <= usual, address


def _every_page() -> list[str]:
    task = rows.task(paused_since=NOW, pending_retry_until=NOW)
    run = rows.run(outcome="failed", error="x", traceback="y")
    act, host = rows.act(note="z"), rows.instance()
    return [
        pages.changelist(),
        pages.page(task),
        *(pages.act(key, task) for key in ("run", "pause", "resume", "clear_retry")),
        *(pages.changelist(m) for m in ("taskrun", "taskoverride", "schedulerinstance")),
        *(pages.page(row) for row in (run, act, host)),
    ]


@pytest.mark.skipif(django.VERSION < (6, 0), reason="Django has the policy since 6.0")
def test_pages_are_served_under_the_policy_of_django(root: Client, settings: Any) -> None:
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE,
        "django.middleware.csp.ContentSecurityPolicyMiddleware",
    ]
    settings.SECURE_CSP = {"default-src": ["'self'"]}
    task = rows.task()
    response = root.get(pages.page(task))
    assert response.headers["content-security-policy"] == "default-src 'self'"
    assert "django_declarative_cron/admin.css" in response.content.decode()


def test_the_style_sheet_is_found_and_linked_on_every_page(root: Client) -> None:
    assert finders.find("django_declarative_cron/admin.css")
    for address in _every_page():
        assert "django_declarative_cron/admin.css" in root.get(address).content.decode()


@pytest.mark.skipif(not apps.is_installed("admin_interface"), reason="needs django-admin-interface")
def test_the_theme_is_kept_on_our_pages(root: Client) -> None:
    for address in _every_page():
        assert "admin-interface" in root.get(address).content.decode()


@pytest.mark.skipif(django.VERSION < (6, 1), reason="the admin has nonces since Django 6.1")
def test_our_style_sheet_bears_the_nonce_of_the_policy(root: Client, settings: Any) -> None:
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE,
        "django.middleware.csp.ContentSecurityPolicyMiddleware",
    ]
    settings.SECURE_CSP = {"style-src": ["<CSP_NONCE_SENTINEL>"]}
    templates = deepcopy(settings.TEMPLATES)
    nonces = "django.template.context_processors.csp"
    templates[0]["OPTIONS"]["context_processors"].append(nonces)
    settings.TEMPLATES = templates
    for address in _every_page():
        html = root.get(address).content.decode()
        ours = re.findall(r"<link[^>]*django_declarative_cron/admin.css[^>]*>", html)
        assert ours and all(" nonce=" in link for link in ours), address
