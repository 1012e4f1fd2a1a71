"""Measure each page in a real browser, and let axe judge it: ``python -m tests.browser.pages``.

A theme, a version of Django and our own styles meet only there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .site import opened, prepare, served

WIDTHS = (1400, 420)
LOOKS = ("light", "dark")

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
  const titles = (element) =>
    [element.closest("[title]"), ...element.querySelectorAll("[title]")]
      .map((each) => each?.title ?? "").join(" ").split(/[\\s:,]+/);
  const cut = all("#content *")
    .filter((each) => getComputedStyle(each).textOverflow === "ellipsis")
    .filter((each) => each.scrollWidth > each.clientWidth && each.checkVisibility())
    .filter((each) => {
      const known = titles(each);
      const symbols = [...each.querySelectorAll("[aria-hidden]")].map((mark) => mark.innerText);
      const words = each.innerText.split(/[\\s:,…]+/).filter((word) => !symbols.includes(word));
      return !words.every((word) => known.some((title) => title.startsWith(word)));
    });
  return {
    first_row: top(rows[0]),
    row_heights: rows.map((row) => Math.ceil(row.getBoundingClientRect().height)),
    tab_stops: first ? stops.indexOf(first) : null,
    too_wide: document.documentElement.scrollWidth - innerWidth,
    actions: all(".ddc-act").map(top),
    why: top(find("#ddc-why")),
    state: top(find("fieldset.ddc-state")),
    runs: top(find("#ddc-runs")),
    upcoming: top(find("#ddc-upcoming")),
    skips: all(".ddc-skip").map((each) => !!find(each.hash)),
    nameless: fields.filter((each) => !each.labels?.length && !each.ariaLabel)
      .map((each) => each.outerHTML.slice(0, 120)),
    cut: cut.map((each) => each.outerHTML.slice(0, 200)),
  };
})()
"""

JUDGE = """
axe.run(document, { resultTypes: ["violations"] }).then((found) =>
  found.violations.flatMap((rule) => rule.nodes.map((node) => {
    const seen = node.any[0]?.data ?? {};
    const colours = seen.fgColor ? `${seen.fgColor} on ${seen.bgColor}` : "";
    return [rule.id, colours, node.target.join(" "), node.html.slice(0, 160)];
  })))
"""

THEIRS = (
    "#header, .breadcrumbs, #nav-sidebar .section, .skip-to-content-link, #content h2,"
    " .paginator [aria-current]"
)
"""What the theme colours alone: a project chooses those colours, and its default is faint."""

# By the ratio of WCAG. Axe leaves out symbols, and texts before or beside something else.
FAINT = """
((theirs) => {
  const colour = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith("color(") ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
  };
  const over = (front, back) => front.slice(0, 3)
    .map((value, at) => value * front[3] + back[at] * (1 - front[3])).concat(1);
  const ground = (element) => {
    if (!element) return [255, 255, 255, 1];
    const own = colour(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own : over(own, ground(element.parentElement));
  };
  const luminance = (rgb) => rgb.slice(0, 3).map((value) => value / 255)
    .map((p) => (p <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4))
    .reduce((sum, p, at) => sum + p * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim();
    const element = texts.currentNode.parentElement;
    const seen = { visibilityProperty: true, opacityProperty: true };
    if (!text || !element.checkVisibility(seen)) continue;
    if (element.closest("script, style, option, :disabled, .visually-hidden, svg")) continue;
    if (theirs && element.closest(theirs)) continue;
    const style = getComputedStyle(element);
    const back = ground(element);
    const ratio = contrast(over(colour(style.color), back), back);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) {
      const kind = `${element.tagName.toLowerCase()}.${element.className}`;
      found.push(`${kind} ${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
    }
  }
  return found;
})
"""


def addresses() -> dict[str, str]:
    """Return the paths of our pages by their names."""
    from django.urls import reverse

    from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskRun

    from ..admin import pages
    from .demo import DEMO_RUN

    task = ScheduledTask.objects.get(name=DEMO_RUN)
    run = TaskRun.objects.filter(task_name=DEMO_RUN, outcome="failed").order_by("-id")[0]
    calendar, expression, timeline = (
        reverse(f"admin:{pages.APP}_scheduledtask_{page}")
        for page in ("calendar", "expression", "timeline")
    )
    helper = f"{expression}?expression=30+2+*+3,10+0&timezone=Europe/Berlin&dialect=posix"
    return {
        "list": pages.changelist(),
        "filtered": pages.changelist(query="?status=overdue"),
        "nothing found": pages.changelist(query="?q=nothing"),
        "task": pages.page(task),
        "pause": pages.act("pause", task),
        "runs": pages.changelist("taskrun"),
        "run": pages.page(run),
        "schedulers": pages.changelist("schedulerinstance"),
        "scheduler": pages.page(SchedulerInstance.objects.order_by("pid")[0]),
        "tokens": pages.changelist("accesstoken"),
        "token": reverse(f"admin:{pages.APP}_accesstoken_add"),
        "audit log": pages.changelist("taskoverride"),
        "timeline": timeline,
        "calendar": calendar,
        "day": f"{calendar}?day={datetime.now(UTC):%Y-%m-%d}",
        "expression": helper,
        "invalid": helper.replace("30", "99"),
    }


def judged(base: str, *, themed: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what each page is like in each window, in the light and in the dark."""
    axe, faint = axe_core(), f"{FAINT}({json.dumps(THEIRS if themed else '')})"
    with opened(base) as browser:
        for look in LOOKS:
            browser.run(f"localStorage.setItem('theme', '{look}')")
            for width in WIDTHS:
                # The theme follows the person's choice only where the system prefers the light.
                browser.show(width, 900, dark=look == "dark" and not themed)
                for name, path in addresses().items():
                    browser.go(base + path)
                    browser.run(f"{axe};0")
                    found = browser.run(MEASURE)
                    found |= {"faint": browser.run(faint), "axe": browser.run(JUDGE)}
                    yield f"{name}, {look}, {width}", found


def axe_core() -> str:
    """Return the script of axe, from the package that brings it; its driver is not ours."""
    found = importlib.util.find_spec("axe_playwright_python")
    assert found is not None and found.origin is not None
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")


def many_tasks() -> None:
    """Store so many tasks that the list has several pages, and a token."""
    from django_declarative_cron.core.http_api import Right
    from django_declarative_cron.store import access_tokens

    from ..admin import rows

    now = datetime.now(UTC)
    later = now + timedelta(hours=2)
    for number in range(149):
        name = f"{number:03} a task with a name that is longer than its column"
        rows.task(name, next_run_at=later, wake_at=later)
    rows.task("x" * 255, next_run_at=later, wake_at=later)
    access_tokens.create("warehouse", [Right.READ], now, author="ada", expires_at=None)


def main() -> None:
    """Visit the pages, and print everything as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--admin", choices=["plain", "themed"], required=True)
    is_themed = parser.parse_args().admin == "themed"
    prepare(themed=is_themed)
    from .demo import fill

    fill(datetime.now(UTC))
    many_tasks()
    with served() as base:
        sys.stdout.write(json.dumps(dict(judged(base, themed=is_themed)), indent=1))


if __name__ == "__main__":
    main()
