"""Rows first, names on every field, nothing that axe objects to: each page, with both themes."""

from __future__ import annotations

import json

import pytest

from ..process import run_python
from .chromium import PATIENCE, installed

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


def is_of_the_theme(finding: list[str]) -> bool:
    rule, colours, target, html = finding
    return any(
        rule == known and (colours == where or target.startswith(where) or html.startswith(where))
        for known, where in OF_THE_THEME
    )


@pytest.mark.nightly
@pytest.mark.own_database
@pytest.mark.skipif(installed() is None, reason="chromium is not installed")
@pytest.mark.parametrize("admin", ["plain", "themed"])
def test_pages_are_compact_and_accessible(admin: str, project_environment: dict[str, str]) -> None:
    words = ("-m", "tests.browser.pages", "--admin", admin)
    done = run_python(*words, env=project_environment, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    for where, page in json.loads(done.stdout).items():
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
