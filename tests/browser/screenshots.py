"""Take the pictures of the documentation: ``python -m tests.browser.screenshots``.

It needs chromium, and nothing else: the rows are those of ``demo``, in a database of its own.
``--only list`` takes those of one page, ``--to DIR`` puts them elsewhere.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from .chromium import Chromium, installed
from .site import log_in, prepare, served

WIDE, NARROW = 1280, 360
LOOKS = [
    ("plain", "light", WIDE),
    ("plain", "dark", WIDE),
    ("plain", "light", NARROW),
    ("themed", "light", WIDE),
    ("themed", "dark", NARROW),
]
HIGHEST = 1600


def addresses() -> dict[str, str]:
    """Give the pages, by the names of their pictures."""
    from django.urls import reverse

    from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskRun

    from .demo import DEMO_RUN

    prefix = "admin:django_declarative_cron"
    task = ScheduledTask.objects.get(name=DEMO_RUN)
    run = TaskRun.objects.filter(task_name=DEMO_RUN, outcome="failed").order_by("-id")[0]
    leader = SchedulerInstance.objects.order_by("pid")[0]
    helper = "?expression=30+2+*+3,10+0&timezone=Europe/Berlin&dialect=posix"
    return {
        "list": reverse(f"{prefix}_scheduledtask_changelist"),
        "task": reverse(f"{prefix}_scheduledtask_change", args=[task.pk]),
        "pause": reverse(f"{prefix}_scheduledtask_act", args=["pause"]) + f"?task={task.pk}",
        "run": reverse(f"{prefix}_taskrun_change", args=[run.pk]),
        "scheduler": reverse(f"{prefix}_schedulerinstance_change", args=[leader.pk]),
        "calendar": reverse(f"{prefix}_scheduledtask_calendar"),
        "expression": reverse(f"{prefix}_scheduledtask_expression") + helper,
    }


def take(admin: str, only: str, to: Path, executable: str) -> None:
    """Take all pictures of one kind of admin."""
    prepare(themed=admin == "themed")
    from .demo import fill

    # Whoever looks on sees the same picture each day, but for the date.
    fill(datetime.now(UTC))
    to.mkdir(parents=True, exist_ok=True)
    with served() as base:
        browser = Chromium(executable)
        try:
            log_in(browser, base)
            for name, path in addresses().items():
                if only in ("", name):
                    _take(browser, admin, name, base + path, to)
        finally:
            browser.close()


def _take(browser: Chromium, admin: str, name: str, url: str, to: Path) -> None:
    for kind, light, width in LOOKS:
        if kind != admin:
            continue
        # The theme takes the dark from what a person chose, and not from the system.
        chosen = "dark" if light == "dark" and admin == "themed" else "auto"
        browser.run(f"localStorage.setItem('theme', '{chosen}')")
        by_system = light == "dark" and admin == "plain"
        browser.show(width, 900, dark=by_system)
        browser.go(url)
        size = "wide" if width == WIDE else "narrow"
        file = to / f"{name}-{admin}-{light}-{size}.png"
        overflow = browser.run("document.documentElement.scrollWidth") - width
        # What a theme fixes to the window's edge would lie across the page otherwise.
        browser.show(width, browser.height(), dark=by_system)
        browser.picture(file, most=HIGHEST)
        _shrink(file)
        sys.stdout.write(f"{file.name}{f' {overflow} px too wide' if overflow > 0 else ''}\n")


def _shrink(file: Path) -> None:
    """Keep as few colours as the eye sees; a repository keeps each picture for good."""
    # It comes with django-admin-interface, without which there are no pictures either.
    from PIL import Image

    with Image.open(file) as picture:
        small = picture.convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE)
    small.save(file, optimize=True)


def main() -> None:
    """Take them: each kind of admin in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="PAGE")
    parser.add_argument("--to", type=Path, default=Path(__file__).parents[2] / "docs/screenshots")
    parser.add_argument("--admin", choices=["plain", "themed"])
    given = parser.parse_args()
    executable = installed()
    if executable is None:
        sys.exit("Install chromium, or name one in DDC_CHROMIUM.")
    if given.admin:
        take(given.admin, given.only, given.to, executable)
        return
    for admin in ("plain", "themed"):
        words = ["--admin", admin, "--only", given.only, "--to", str(given.to)]
        subprocess.run([sys.executable, "-m", "tests.browser.screenshots", *words], check=True)


if __name__ == "__main__":
    main()
