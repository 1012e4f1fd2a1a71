"""Take the pictures of the documentation: ``python -m tests.browser.screenshots``.

It needs chromium, and nothing else: the rows are those of ``demo``, in a database of its own.
List and task page are taken wide and narrow, light and dark, with and without the theme.
``--only list`` takes those of one page, ``--to DIR`` puts them elsewhere.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from .chromium import Chromium
from .pages import addresses
from .site import opened, prepare, served

WIDE, NARROW = 1400, 420
HIGHEST = 1600
BOTH = ("list", "task")
ONCE = ("pause", "run", "calendar", "expression")


def take(admin: str, only: str, to: Path) -> None:
    """Take all pictures of one kind of admin."""
    prepare(themed=admin == "themed")
    from .demo import fill

    # Whoever looks on sees the same picture each day, but for the date.
    fill(datetime.now(UTC))
    to.mkdir(parents=True, exist_ok=True)
    with served() as base, opened(base) as browser:
        for name, path in addresses().items():
            if only in ("", name):
                for light, width in _looks(name, admin):
                    _take(browser, admin, light, width, f"{base}{path}", to / name)


def _looks(name: str, admin: str) -> list[tuple[str, int]]:
    if name in BOTH:
        return [(light, width) for light in ("light", "dark") for width in (WIDE, NARROW)]
    return [("light", WIDE)] if name in ONCE and admin == "plain" else []


def _take(browser: Chromium, admin: str, light: str, width: int, url: str, to: Path) -> None:
    # The theme takes the dark from what a person chose, and not from the system.
    chosen = "dark" if light == "dark" and admin == "themed" else "auto"
    browser.run(f"localStorage.setItem('theme', '{chosen}')")
    by_system = light == "dark" and admin == "plain"
    browser.show(width, 900, dark=by_system)
    browser.go(url)
    size = "wide" if width == WIDE else "narrow"
    file = to.with_name(f"{to.name}-{admin}-{light}-{size}.png")
    # What a theme fixes to the window's edge would lie across the page otherwise.
    browser.show(width, browser.height(), dark=by_system)
    browser.picture(file, most=HIGHEST)
    _shrink(file)
    sys.stdout.write(f"{file.name}\n")


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
    if given.admin:
        take(given.admin, given.only, given.to)
        return
    for admin in ("plain", "themed"):
        words = ["--admin", admin, "--only", given.only, "--to", str(given.to)]
        subprocess.run([sys.executable, "-m", "tests.browser.screenshots", *words], check=True)


if __name__ == "__main__":
    main()
