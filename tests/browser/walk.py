"""Walk through the admin as an operator does, in a real browser: ``python -m tests.browser.walk``.

A task fails; why is read; its retry is cleared; it is run by hand and turns green while one
looks on; it is paused with a note; all that is found in the audit.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import Any

from .chromium import Chromium
from .site import opened, prepare, served

NOTE = "The bank is down for maintenance."


class Bank:
    """What the task asks for rates; it is down until somebody mends it."""

    is_down = True


def fetch_rates() -> None:
    """Fetch the rates."""
    if Bank.is_down:
        raise ConnectionError("the bank answered 503")


def walk(browser: Chromium, base: str) -> dict[str, Any]:
    """Do it, and tell what was seen on the way."""
    from django.urls import reverse

    seen: dict[str, Any] = {}
    browser.go(base + reverse("admin:django_declarative_cron_scheduledtask_changelist"))
    browser.until(lambda: reloaded(browser, "Retrying"))
    browser.click("#result_list th.field-name a")
    seen["why"] = browser.run("document.querySelector('#ddc-why').lastChild.textContent.trim()")
    browser.click(".ddc-act-clear_retry")
    browser.click("#content-main .submit-row [type=submit]")
    seen["cleared"] = browser.run("document.querySelector('.messagelist').innerText")
    Bank.is_down = False
    browser.click(".ddc-act-run")
    browser.click("#content-main .submit-row [type=submit]")
    # Nobody reloads here: the page renews itself.
    browser.until(lambda: "succeeded" in first_run(browser))
    seen["green"] = first_run(browser)
    browser.click(".ddc-act-pause")
    browser.fill("#id_note", NOTE)
    browser.click("#content-main .submit-row [type=submit]")
    seen["paused"] = browser.run("document.querySelector('#ddc-why').lastChild.textContent.trim()")
    browser.go(base + reverse("admin:django_declarative_cron_taskoverride_changelist"))
    rows = "[...document.querySelectorAll('#result_list tbody tr')].map(r => r.innerText)"
    seen["audit"] = [" ".join(row.split()) for row in browser.run(rows)]
    for page in ("calendar", "expression"):
        browser.go(base + reverse(f"admin:django_declarative_cron_scheduledtask_{page}"))
    seen["problems"] = browser.problems
    return seen


def reloaded(browser: Chromium, word: str) -> bool:
    """Tell whether a word is on the page, after fetching it again where it is not."""
    if word in browser.text():
        return True
    browser.go(browser.run("location.href"))
    return False


def first_run(browser: Chromium) -> str:
    """Give the first row of the run history."""
    row = "document.querySelector('[aria-labelledby=ddc-runs] tbody tr')?.innerText"
    return " ".join(str(browser.run(row)).split())


def main() -> None:
    """Walk, and print what was seen as JSON."""
    prepare(themed=False)
    from django_declarative_cron import Scheduler
    from django_declarative_cron.runtime.clock import system_clock
    from django_declarative_cron.store import operator_actions
    from django_declarative_cron.store.operator_actions import Act

    scheduler = Scheduler()
    scheduler.initialize([("exchange-rates", "0 0 1 1 *", fetch_rates, timedelta(hours=1))])
    try:
        asked = Act(author="nobody", at=system_clock.now())
        operator_actions.request_run(["exchange-rates"], asked)
        with served() as base, opened(base) as browser:
            seen = walk(browser, base)
    finally:
        scheduler.stop()
    sys.stdout.write(json.dumps(seen, indent=1))


if __name__ == "__main__":
    # As a module of its own name, so that the task is found by its dotted path.
    from tests.browser import walk as me

    me.main()
