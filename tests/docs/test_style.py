"""The style of pages and reference tables: plain words, few relative clauses, short sentences."""

from __future__ import annotations

import re

import pytest

from ..conftest import CHECKOUT
from .pages import DOCS, README, generate

# As they are written, without generated parts.
PATHS = [
    README.path,
    CHECKOUT / "CHANGELOG.md",
    *(page.path for page in DOCS.values()),
]
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in PATHS}
TABLES = [
    *("options", "keys", "job", "retry", "checks EWI", "metrics", "commands", "runscheduler"),
    *("events runs", "events tasks", "events scheduler", "extras"),
]
TEXTS |= {name: generate(name) for name in TABLES}
MOST_WORDS = 30_000
MOST_RELATIVE = 3
LONGEST_SENTENCE = 36

_RELATIVE = re.compile(r"\b(?:what|who|whoever|whatever|whose)\b", re.IGNORECASE)

# Each has a plain word: fix, report, distinguish, pending, immediately, again, check.
NEVER_SAID = [
    *("mend", "mends", "mended", "told", "tell", "tells", "telling", "apart", "owe", "owes"),
    *("owed", "beside", "beneath", "alike", "anew", "whoever", "whatever", "farewell", "bury"),
    *("patience", "weather", "knobs", "judge", "judges", "judged", "stands", "looks at"),
    *("at once", "for want of", "all else", "comes to its end"),
]
_NEVER = re.compile(rf"\b(?:{'|'.join(NEVER_SAID)})\b", re.IGNORECASE)

# Terms of a field, by page.
EXCEPTIONS: dict[str, set[str]] = {}


def prose(text: str) -> str:
    """Return a text without code, comments and the targets of links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]+`", "`", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def words(text: str) -> list[str]:
    return re.findall(r"\b[\w'-]+\b", text)


def sentences(text: str) -> list[str]:
    """Return the sentences, cells and items of a text."""
    return re.split(r"(?<=[.:;!?])\s+|\n\n|^ *(?:[-*]|\d+\.) |\||·", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", TEXTS)
def test_plain_words_are_used(name: str) -> None:
    found = {match[0].casefold() for match in _NEVER.finditer(prose(TEXTS[name]))}
    assert found - EXCEPTIONS.get(name, set()) == set()


@pytest.mark.parametrize("name", TEXTS)
def test_sentences_have_a_subject(name: str) -> None:
    text = prose(TEXTS[name])
    assert len(_RELATIVE.findall(text)) <= max(1, MOST_RELATIVE * len(words(text)) / 1000)


@pytest.mark.parametrize("name", TEXTS)
def test_sentences_are_short(name: str) -> None:
    found = sentences(prose(TEXTS[name]))
    assert [each for each in found if len(words(each)) > LONGEST_SENTENCE] == []


def test_the_pages_have_a_limited_number_of_words() -> None:
    written = (TEXTS[path.name] for path in PATHS)
    assert sum(len(words(text)) for text in written) <= MOST_WORDS


@pytest.mark.parametrize("text", ["The log tells it.", "It is retried at once.", "Whatever runs."])
def test_other_words_are_found(text: str) -> None:
    assert _NEVER.search(prose(text))
