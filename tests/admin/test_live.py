"""What an open page fetches again: the changing parts alone, by the rights of the whole page."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from . import pages, rows
from .pages import text
from .rows import NOW
from .test_tasks import cells


def live(row: Any = None, model: str = "scheduledtask", site: str = "admin") -> str:
    if row is None:
        return reverse(f"{site}:{pages.APP}_{model}_live_list")
    return reverse(f"{site}:{pages.APP}_{model}_live_page", args=[row.pk])


def announced(html: str) -> dict[str, str]:
    """Give what the page tells the script."""
    control = re.search(r'<p class="ddc-live"([^>]*)>', html)
    assert control
    return dict(re.findall(r'data-ddc-([a-z]+)="([^"]*)"', control[1]))


def test_the_list_sends_its_overview_and_its_rows_and_no_more(root: Client) -> None:
    rows.instance()
    for number in range(3):
        rows.task(f"task {number}")
        rows.run(f"task {number}")
    page, part = root.get(pages.changelist()), root.get(live())
    told, html = announced(page.content.decode()), part.content.decode()
    assert (told["live"], told["rows"], told["url"]) == ("ddc-summary", "result_list", "live/")
    assert 'id="ddc-summary"' in html
    assert 'id="result_list"' in html
    for column in ("status", "name", "next_run", "last_run"):
        assert cells(part, column) == cells(page, column) != []
    for absent in ("<html", "<link", "<script", "changelist-filter", "nav-sidebar", "<form"):
        assert absent in page.content.decode()
        assert absent not in html


def test_the_page_of_a_task_sends_its_state_and_its_story(root: Client) -> None:
    task = rows.task(pending_retry_until=NOW + timedelta(minutes=5))
    rows.run(outcome="failed", error="no route to host")
    page, part = root.get(pages.page(task)), root.get(live(task))
    told, html = announced(page.content.decode()), part.content.decode()
    assert told["url"] == "../live/"
    assert pages.page(task).replace("/change/", "/live/") == live(task)
    for name in told["live"].split():
        assert f'id="{name}"' in html or f"aligned {name}" in html
    assert "no route to host" in text(part)
    assert "Retrying" in text(part)
    for absent in ("<html", "<script", "<form", "shop.tasks.send_digests"):
        assert absent in page.content.decode()
        assert absent not in html


def test_filters_pages_and_sites_are_those_of_the_page(root: Client) -> None:
    rows.task("paused", paused_since=NOW)
    gone = rows.task("active")
    assert cells(root.get(f"{live()}?status=paused"), "name") == ["paused"]
    assert cells(root.get(f"{live(site='operations')}?q=activ"), "name") == ["active"]
    address = live(gone)
    gone.delete()
    assert root.get(address).status_code == 302


def test_the_schedulers_send_their_list(root: Client) -> None:
    rows.instance(host="shop-1")
    assert "shop-1" in text(root.get(live(model="schedulerinstance")))
    html = root.get(pages.changelist("schedulerinstance")).content.decode()
    assert announced(html)["rows"] == "result_list"
    # Screen readers announce failures only.
    assert '<span class="ddc-live-at"></span>' in html
    assert '<span class="ddc-live-failed" role="status"></span>' in html


def test_the_page_of_a_run_is_renewed_until_the_run_has_ended(root: Client) -> None:
    run = rows.run(outcome="running", finished_at=None)
    page = root.get(pages.page(run)).content.decode()
    told = announced(page)
    assert told["url"] == "../live/"
    assert told["live"] == "ddc-state ddc-run"
    assert 'class="ddc-passing"' in page
    type(run).objects.update(outcome="failed", finished_at=NOW, error="no route", traceback="x")
    part = root.get(live(run, "taskrun"))
    html = part.content.decode()
    assert "no route" in text(part)
    for name in told["live"].split():
        assert f'id="{name}"' in html or f"aligned {name}" in html
    # Without this, the script knows that nothing more is to come.
    assert "data-ddc-live" not in html
    assert "data-ddc-live" not in root.get(pages.page(run)).content.decode()
    for absent in ("<html", "<script", "<form"):
        assert absent not in html


def test_what_goes_on_says_so_in_each_part(root: Client) -> None:
    task = rows.task()
    rows.instance()
    for part in (live(), live(task), live(model="schedulerinstance")):
        assert "data-ddc-live" in root.get(part).content.decode()


@pytest.mark.parametrize("is_list", [True, False])
def test_what_has_not_changed_is_not_sent_again(root: Client, is_list: bool) -> None:
    task = rows.task()
    address = live() if is_list else live(task)
    first = root.get(address)
    assert first.status_code == 200
    again = root.get(address, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    rows.run(outcome="failed", error="no route to host")
    task.failures = 3
    task.pending_retry_until = NOW + timedelta(minutes=5)
    task.save()
    changed = root.get(address, headers={"If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert changed["ETag"] != first["ETag"]
