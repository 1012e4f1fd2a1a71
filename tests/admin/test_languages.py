"""Pages in the language of whoever reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from . import pages, rows
from .rows import NOW

Words = Callable[[Any], str]


@pytest.fixture(autouse=True)
def _back_to_the_language_before() -> Iterator[None]:
    """Forget the language that the middleware chose for the thread."""
    with translation.override(translation.get_language()):
        yield


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("de", ["Warum?", "wartet auf ihre Wiederholung um", "Nächste Vorkommen"]),
        ("fr", ["Pourquoi ?", "attend sa nouvelle tentative", "Prochaines occurrences"]),
        ("es", ["¿Por qué?", "espera su reintento a las", "Próximas ocurrencias"]),
        ("uk", ["Чому?", "чекає на повторну спробу", "Наступні події"]),
    ],
)
def test_a_task_is_told_in_the_language_of_its_reader(
    root: Client, text: Words, language: str, words: list[str]
) -> None:
    rows.instance()
    task = rows.task(pending_retry_until=NOW + timedelta(minutes=5), discharged_at=NOW)
    shown = text(root.get(pages.page(task), headers={"accept-language": language}))
    assert [word for word in words if word.casefold() not in shown.casefold()] == []


@pytest.mark.parametrize("language", ["de", "fr", "es", "uk"])
def test_every_page_is_shown_in_every_language(root: Client, language: str) -> None:
    rows.instance()
    task = rows.task(paused_since=NOW)
    rows.act()
    run = rows.run(outcome="failed", traceback="boom")
    for address in (
        pages.changelist(),
        pages.page(task),
        pages.page(run),
        *(pages.act(key, task) for key in ("run", "pause", "resume", "skip_next", "clear_retry")),
        pages.changelist("taskrun"),
        pages.changelist("schedulerinstance"),
    ):
        assert root.get(address, headers={"accept-language": language}).status_code == 200
