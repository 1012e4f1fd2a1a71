"""Public names of a package that are imported when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from typing import Any


def lazily(
    package: MutableMapping[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Give what a package is to have as ``__getattr__`` and ``__dir__``.

    Args:
        package: its globals.
        homes: the module of each name, relative to the package.
    """
    own = package["__name__"]

    def get(name: str) -> Any:
        """Import a name, or refuse it as Python does."""
        if name not in homes:
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], own), name)

    def names() -> list[str]:
        """Give the names that are there and those that can be."""
        return sorted({*package, *homes})

    return get, names
