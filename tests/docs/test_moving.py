"""What the page on moving shows is what ``cron import`` writes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.core.management import call_command

from django_declarative_cron import conf
from django_declarative_cron.management.cli.import_ import READERS
from django_declarative_cron.management.commands.cron import Command

from ..importers import stand_ins
from .pages import DOCS, Block

PAGE = DOCS["moving.md"]
PAGES = [DOCS["celery-beat.md"], PAGE]


def _examples() -> Iterator[tuple[Block, list[Block], Block]]:
    """Give what is moved, the modules beside it, and what becomes of it."""
    asked: list[Block] = []
    for block in (block for page in PAGES for block in page.blocks):
        if block.marker.startswith("moves: "):
            asked = [block]
        elif block.marker.startswith("module-of-rival: "):
            asked.append(block)
        elif block.marker == "moved":
            yield asked[0], asked[1:], block


EXAMPLES = list(_examples())


@pytest.fixture(autouse=True)
def _shop(modules: dict[str, ModuleType]) -> None:
    for name, function in list(vars(modules["shop.tasks"]).items()):
        if callable(function):
            function.__module__, function.__qualname__ = "shop.tasks", name


def _run(block: Block, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType(name)
    with monkeypatch.context() as patch:
        for each, stand_in in stand_ins.modules().items():
            patch.setitem(sys.modules, each, stand_in)
        exec(compile(block.text, block.place, "exec"), vars(module))
    return module


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[0].marker)
def test_what_is_moved_becomes_what_is_shown(
    example: tuple[Block, list[Block], Block],
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, beside, shown = example
    settings.TIME_ZONE = "UTC"
    rival, *source = given.marker.removeprefix("moves: ").split()
    for block in beside:
        name = block.marker.removeprefix("module-of-rival: ")
        monkeypatch.setitem(sys.modules, name, _run(block, name, monkeypatch))
    if given.language == "text":
        path = tmp_path / "crontab"
        path.write_text(given.text, encoding="utf-8")
        source = [str(path)]
    else:
        module = _run(given, source[0].rpartition(".")[0] if source else "", monkeypatch)
        for name in source:
            monkeypatch.setitem(sys.modules, name.rpartition(".")[0], module)
        for key, value in vars(module).items():
            if key.isupper():
                setattr(settings, key, value)
    out = StringIO()
    call_command(Command(stdout=out, stderr=StringIO()), "import", rival, *source)
    _, _, moved = out.getvalue().partition("\n\n")
    assert moved == shown.text
    left: dict[str, Any] = {}
    exec(out.getvalue(), left)
    assert [each for each in conf.problems(left["SCHEDULED_TASKS"]) if each.error] == []


def test_every_rival_has_its_section_and_row() -> None:
    rows = PAGE.table("from", "source")
    assert [row["from"].strip("`") for row in rows] == list(READERS)
    assert {block.marker.split()[1] for block, _, _ in EXAMPLES} == {*READERS} - {"django-q"}
