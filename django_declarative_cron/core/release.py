"""Which of two releases is the older one, as far as their texts tell."""

from __future__ import annotations

import re

_NUMBERED = re.compile(r"v?\d+(?:[.\-_]\d+)*", re.ASCII | re.IGNORECASE)


def is_older(release: str, other: str) -> bool | None:
    """Compare releases by their numbers: ``1.9`` is older than ``v1.10``.

    Args:
        release: as the option ``RELEASE`` has it.
        other: likewise.

    Returns:
        whether it is the older one; ``None`` where one of them is not made of numbers alone.
    """
    if not (_NUMBERED.fullmatch(release) and _NUMBERED.fullmatch(other)):
        return None
    mine, others = _numbers(release), _numbers(other)
    length = max(len(mine), len(others))
    return _padded(mine, length) < _padded(others, length)


def _numbers(release: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"[0-9]+", release)]


def _padded(numbers: list[int], length: int) -> list[int]:
    return numbers + [0] * (length - len(numbers))
