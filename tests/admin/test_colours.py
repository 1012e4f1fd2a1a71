"""Every colour of ours can be read on every ground that the admin puts it on (WCAG AA)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib import admin

import django_declarative_cron

OURS = Path(django_declarative_cron.__file__).parent / "static/django_declarative_cron/admin.css"
THEIRS = Path(admin.__file__).parent / "static/admin/css"
TOKENS = ("good", "bad", "warn", "busy")
LIGHT, DARK = 0, 1


def declared(css: str) -> dict[str, str]:
    """Give the first value of each custom property."""
    found: dict[str, str] = {}
    for name, value in re.findall(r"--([\w-]+):\s*(#[0-9a-fA-F]{3,6})\b", css):
        found.setdefault(name, value)
    return found


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def grounds(mode: int) -> dict[str, str]:
    name = "dark_mode.css" if mode == DARK else "base.css"
    return declared((THEIRS / name).read_text(encoding="utf-8"))


def ours(mode: int) -> list[dict[str, str]]:
    """Give our colours, for the dark once for each way to ask for it."""
    blocks = re.findall(r"\{([^{}]*--ddc-good:[^{}]*)\}", OURS.read_text(encoding="utf-8"))
    light, *dark = [declared(block) for block in blocks]
    return dark if mode == DARK else [light]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("mode", [LIGHT, DARK])
def test_words_in_our_colours_are_read_on_every_ground(mode: int, token: str) -> None:
    found = grounds(mode)
    for colours in ours(mode):
        # Every other row of a list is darkened, and a row that is chosen is lit.
        for ground in ("body-bg", "darkened-bg", "selected-row"):
            assert contrast(colours[f"ddc-{token}"], found[ground]) >= 4.5, ground


@pytest.mark.parametrize("mode", [LIGHT, DARK])
def test_quiet_words_are_read_too(mode: int) -> None:
    found = grounds(mode)
    for ground in ("body-bg", "darkened-bg", "selected-row"):
        assert contrast(found["body-quiet-color"], found[ground]) >= 4.5, ground


def test_every_way_to_ask_for_the_dark_gives_the_same_colours() -> None:
    first, *others = ours(DARK)
    assert len(others) == 2
    assert all(each == first for each in others)


def test_the_ratio_is_that_of_the_guidelines() -> None:
    assert contrast("#fff", "#000") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.005)
