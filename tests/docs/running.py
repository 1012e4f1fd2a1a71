"""Python blocks of the pages, run as they stand."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from .pages import Block, Page

_IDS = re.compile(r"#((?: [EWI]\d{3})+)$")


class Runner:
    """Run blocks; each sees the preamble of its page and nothing else."""

    def __init__(self, folder: Path, modules: Mapping[str, ModuleType]) -> None:
        self._folder = folder
        self._modules = modules

    def run(self, page: Page, block: Block) -> dict[str, Any]:
        known: dict[str, Any] = {"INSTALLED_APPS": []}
        for each in page.blocks:
            if each.marker == "preamble" and each is not block:
                known |= self._run(each, known)
        left = self._run(block, known)
        if (module := module_of(block)) is not None:
            vars(self._modules[module]).update(_public(left))
        return left

    def _run(self, block: Block, known: dict[str, Any]) -> dict[str, Any]:
        # A file of its own, so that a failure shows the line that failed.
        path = self._folder / f"{block.place.replace(':', '-line-')}.py"
        path.write_text(block.text, encoding="utf-8")
        return runpy.run_path(str(path), init_globals=known)


def module_of(block: Block) -> str | None:
    """Name the module that a block is the text of, if it is one."""
    kind, _, what = block.marker.partition(": ")
    if kind == "module":
        return what
    if kind == "write" and what.endswith(".py"):
        return what.removesuffix(".py").replace("/", ".")
    return None


def _public(left: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in left.items() if not name.startswith("__")}


def announced(text: str) -> list[set[str]]:
    """Give, for each item of ``SCHEDULED_TASKS``, the check ids that comments announce."""
    lines = text.splitlines()
    return [_ids(lines[item.end_lineno - 1]) for item in _items(text) if item.end_lineno]


def _ids(line: str) -> set[str]:
    found = _IDS.search(line)
    return {f"declarative_cron.{word}" for word in found[1].split()} if found else set()


def _items(text: str) -> list[ast.expr]:
    for statement in ast.parse(text).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="SCHEDULED_TASKS")], value=ast.List(elts=items)):
                return items
    raise AssertionError("the block does not assign SCHEDULED_TASKS a list")
