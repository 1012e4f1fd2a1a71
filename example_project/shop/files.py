"""The shop's folder, and writing files that nobody sees half-written."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings


def folder(name: str = "") -> Path:
    """Give a folder of the shop's data; it exists.

    Args:
        name: below ``settings.SHOP_VAR``.
    """
    path = Path(settings.SHOP_VAR, name)
    path.mkdir(parents=True, exist_ok=True)
    return path


def write_whole(path: Path, text: str) -> None:
    """Write a file in one step: readers see the old content or the new one.

    Args:
        path: of the file.
        text: its content.
    """
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)
