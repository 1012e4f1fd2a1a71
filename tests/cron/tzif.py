"""The transitions a zone's file states, read without zoneinfo's help (RFC 8536)."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple
from zoneinfo import TZPATH, available_timezones

from ..effort import IS_COMPLETE

PARTS = 10
"""Into how many tests a proof for every zone is divided."""

_LATELY = datetime(1996, 1, 1, tzinfo=UTC).timestamp()
_HEADER = struct.Struct(">4sc15x6L")


class Change(NamedTuple):
    """Hold a change of the offset: seconds since 1970, and the offset on each side."""

    second: int
    before: int
    after: int


@cache
def changes(key: str) -> tuple[Change, ...]:
    """Return the changes of offset that the file of a zone lists."""
    data = _file(key)
    version_1 = _sizes(data, 0)
    utc, standard, leaps, times, types, letters = version_1
    start = 44 + times * 5 + types * 6 + letters + leaps * 8 + standard + utc
    return tuple(_changes(data, start))


def zones() -> list[str]:
    """Return one zone of each set that share their transitions, all known zones covered."""
    distinct = {_file(key): key for key in sorted(available_timezones(), reverse=True)}
    return sorted(distinct.values())


def zones_to_prove() -> list[str]:
    """Return the zones that changed in the last 30 years, or all in a complete run."""
    if IS_COMPLETE:
        return zones()
    return [key for key in zones() if any(each.second > _LATELY for each in changes(key))]


@cache
def _file(key: str) -> bytes:
    for root in TZPATH:
        path = Path(root, key)
        if path.is_file():
            return path.read_bytes()
    return resources.files("tzdata").joinpath("zoneinfo", *key.split("/")).read_bytes()


def _sizes(data: bytes, start: int) -> tuple[int, ...]:
    magic, version, *sizes = _HEADER.unpack_from(data, start)
    assert magic == b"TZif"
    assert version >= b"2"
    return tuple(sizes)


def _changes(data: bytes, start: int) -> list[Change]:
    _, _, _, times, types, _ = _sizes(data, start)
    start += 44
    seconds = struct.unpack_from(f">{times}q", data, start)
    kinds = data[start + times * 8 : start + times * 9]
    offsets = [
        struct.unpack_from(">l", data, start + times * 9 + kind * 6)[0] for kind in range(types)
    ]
    found, before = [], offsets[0]
    for second, kind in zip(seconds, kinds, strict=True):
        if offsets[kind] != before:
            found.append(Change(second, before, offsets[kind]))
        before = offsets[kind]
    return found
