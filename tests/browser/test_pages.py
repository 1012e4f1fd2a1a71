"""Each page with both themes, and an operator's way through the admin, in a real browser."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ..process import run_python
from .chromium import PATIENCE, installed
from .walk import NOTE

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.own_database,
    pytest.mark.skipif(installed() is None, reason="chromium is not installed"),
]

HIGHEST_FIRST_ROW = {"1400": 320, "420": 420}
COMPACT = ("list", "runs", "schedulers", "tokens", "audit log")

OF_THE_THEME = {
    # Its default colours, which a project chooses: headings, the present page, the user's name.
    ("color-contrast", "#ffffff on #44b78b"),
    ("color-contrast", "#44b78b on #0c4b33"),
    # The empty image that it shows before a project chooses a logo has no text.
    ("image-alt", '<img class="logo default"'),
    # It makes a menu of each filter, next to the heading that names it.
    ("select-name", ".list-filter-dropdown"),
    # It forbids zooming on phones.
    ("meta-viewport", '<meta name="viewport" content="user-scalable=no'),
}
"""What axe finds in django-admin-interface itself: a rule, and the colours or the element."""


def seen(environment: dict[str, str], module: str, *words: str) -> dict[str, Any]:
    """Return what a module of this folder prints; it needs a process and a database of its own."""
    words = ("-m", f"tests.browser.{module}", *words)
    done = run_python(*words, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def is_of_the_theme(finding: list[str]) -> bool:
    rule, colours, target, html = finding
    return any(
        rule == known and (colours == where or target.startswith(where) or html.startswith(where))
        for known, where in OF_THE_THEME
    )


@pytest.mark.parametrize("admin", ["plain", "themed"])
def test_pages_are_compact_and_accessible(admin: str, project_environment: dict[str, str]) -> None:
    for where, page in seen(project_environment, "pages", "--admin", admin).items():
        name, _look, width = where.split(", ")
        assert page["too_wide"] <= 0, where
        for found in ("nameless", "cut", "faint"):
            assert page[found] == [], where
        findings = page["axe"]
        if admin == "themed":
            findings = [each for each in findings if not is_of_the_theme(each)]
        assert findings == [], where
        if name in COMPACT:
            assert page["first_row"] <= HIGHEST_FIRST_ROW[width], where
            assert max(page["row_heights"]) <= 36, where
            assert page["tab_stops"] <= 20, where
            assert page["skips"] == [True], where
        if name == "list":
            assert len(page["row_heights"]) == 100, where
        if name == "task":
            assert page["actions"] and max(page["actions"]) < 900, where
            assert page["why"] < page["state"] < page["runs"] < page["upcoming"], where
        if name == "nothing found":
            assert page["skips"] == [], where


def test_an_operator_finds_and_mends_what_failed(project_environment: dict[str, str]) -> None:
    found = seen(project_environment, "walk")
    assert found["problems"] == []
    assert found["why"].startswith("It failed, and waits for its retry at ")
    assert found["cleared"] == "Retry state cleared: exchange-rates."
    assert found["green"].startswith("✔ succeeded")
    assert found["paused"] == (
        f"It does not run because ada paused it, until someone resumes it ({NOTE})."
    )
    kinds = [line.split(" UTC ")[1].split()[0] for line in found["audit"]]
    assert kinds == ["paused", "run", "retry", "run"]
    assert NOTE in found["audit"][0]
    assert all(" ada" in line for line in found["audit"][:3])
