"""Measure positions and heights in a real browser: ``python -m tests.browser.layout``."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from .chromium import Chromium, installed
from .screenshots import addresses
from .site import log_in, prepare, served

MEASURE = """
(() => {
  const find = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const top = (element) =>
    element ? Math.round(element.getBoundingClientRect().top + scrollY) : null;
  const rows = all("#result_list tbody tr");
  const first = find("#result_list tbody tr :is(a, input)");
  const stops = all("#content :is(a[href], button, input, select, summary, [tabindex='0'])")
    .filter((each) => each.type !== "hidden" && !each.disabled && each.tabIndex >= 0)
    .filter((each) => each.checkVisibility());
  const fields = all("#content :is(input:not([type=hidden], [type=submit]), select, textarea)")
    // The theme makes these of the filters.
    .filter((each) => !each.closest("#changelist-filter"));
  return {
    first_row: top(rows[0]),
    row_heights: rows.map((row) => Math.ceil(row.getBoundingClientRect().height)),
    tab_stops: first ? stops.indexOf(first) : null,
    width: document.documentElement.scrollWidth,
    actions: all(".ddc-act").map(top),
    why: top(find("#ddc-why")),
    state: top(find("fieldset.ddc-state")),
    runs: top(find("#ddc-runs")),
    upcoming: top(find("#ddc-upcoming")),
    nameless: fields.filter((each) => !each.labels?.length && !each.ariaLabel)
      .map((each) => each.outerHTML.slice(0, 120)),
  };
})()
"""


def measured(browser: Chromium, base: str, width: int) -> dict[str, Any]:
    """Return the measures of each page in a window."""
    found = {}
    for name, path in addresses().items():
        browser.show(width, 900)
        browser.go(base + path)
        found[name] = browser.run(MEASURE)
        found[name]["too_wide"] = found[name].pop("width") - width
    return found


def many_tasks() -> None:
    """Store so many tasks of every status that the list has several pages."""
    from django_declarative_cron.models import ScheduledTask

    seed = ScheduledTask.objects.order_by("pk")[0]
    names = [
        f"{number:03} a task with a name that is longer than its column" for number in range(150)
    ]
    fields = {
        field.attname: getattr(seed, field.attname)
        for field in ScheduledTask._meta.concrete_fields
        if not field.primary_key
    }
    later = datetime.now(UTC) + timedelta(hours=2)
    fields |= {"next_run_at": later, "wake_at": later, "running_run": None}
    ScheduledTask.objects.bulk_create(ScheduledTask(**fields | {"name": name}) for name in names)


def main() -> None:
    """Measure, and print everything as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--admin", choices=["plain", "themed"], required=True)
    executable = installed()
    is_themed = parser.parse_args().admin == "themed"
    if executable is None:
        sys.exit("Install chromium, or name one in DDC_CHROMIUM.")
    prepare(themed=is_themed)
    from .demo import fill

    fill(datetime.now(UTC))
    many_tasks()
    with served() as base:
        browser = Chromium(executable)
        try:
            log_in(browser, base)
            found = {str(width): measured(browser, base, width) for width in (1400, 420)}
        finally:
            browser.close()
    sys.stdout.write(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
