"""Code that the check does not run, as storms and benchmarks, imports what exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from .conftest import CHECKOUT

PACKAGE = "django_declarative_cron"
FOLDERS = ("tests", "benchmarks", "example_project")


def missing(source: str, folder: Path) -> Iterator[str]:
    """Yield each import of the package, and of a file beside, of which there is nothing.

    Args:
        source: the text of a module.
        folder: where it lies.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom):
            continue
        for name in (each.name for each in node.names):
            if node.level:
                place = [folder, *folder.parents][node.level - 1]
                is_there = _is_module(place.joinpath(*(node.module or name).split(".")))
                # A package gives its modules, and what it defines itself.
                package = place / "__init__.py"
                is_there = is_there or (
                    not node.module and package.exists() and name in package.read_text("utf-8")
                )
            elif str(node.module).partition(".")[0] == PACKAGE:
                is_there = _has(str(node.module), name)
            else:
                continue
            if not is_there:
                yield ast.unparse(node)


def _is_module(path: Path) -> bool:
    return path.with_suffix(".py").exists() or path.is_dir()


def _has(module: str, name: str) -> bool:
    try:
        if hasattr(import_module(module), name):
            return True
        import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_import_has_its_module(folder: str) -> None:
    paths = list((CHECKOUT / folder).rglob("*.py"))
    found = {
        path.relative_to(CHECKOUT).as_posix(): list(missing(path.read_text("utf-8"), path.parent))
        for path in paths
    }
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert paths


@pytest.mark.parametrize(
    "source",
    [
        "from .gone import a",
        "from ..gone.deep import a",
        f"from {PACKAGE}.gone import a",
        f"from {PACKAGE}.conf import gone",
    ],
)
def test_an_import_of_nothing_is_named(source: str) -> None:
    assert list(missing(source, Path(__file__).parent / "store")) == [source]
