"""The few parts that our pictures are made of."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

NOTHING = SafeString("")


def drawing(
    kind: str, width: int, height: int, label: str, parts: Iterable[SafeString]
) -> SafeString:
    """Put parts together to a picture that is as wide as there is room."""
    return format_html(
        '<svg class="ddc-picture ddc-{}" viewBox="0 0 {} {}" preserveAspectRatio="none"'
        ' role="img" aria-label="{}" focusable="false">{}</svg>',
        kind,
        width,
        height,
        label,
        SafeString("".join(parts)),
    )


def rect(kind: str, x: float, y: float, width: float, height: float, title: str = "") -> SafeString:
    """Return a rectangle, with a text for whoever points at it."""
    # A list has thousands of these: what is safe by its making is not escaped one by one.
    return SafeString(
        f'<rect class="{_class(kind)}" x="{number(x)}" y="{number(y)}" width="{number(width)}"'
        f' height="{number(height)}">{_title(title)}</rect>'
    )


def blocks(kind: str, places: Iterable[tuple[float, float, float, float]]) -> SafeString:
    """Return rectangles of one kind as one element; nobody can point at a single one."""
    outline = "".join(
        f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h-{number(width)}z"
        for x, y, width, height in places
    )
    return SafeString(f'<path class="{_class(kind)}" d="{outline}"/>') if outline else NOTHING


def line(
    kind: str, start: tuple[float, float], end: tuple[float, float], title: str = ""
) -> SafeString:
    """Return a line that stays as thin as it is, however the picture is stretched."""
    return format_html(
        '<line class="ddc-{}" x1="{}" y1="{}" x2="{}" y2="{}"'
        ' vector-effect="non-scaling-stroke">{}</line>',
        kind,
        *map(number, (*start, *end)),
        _title(title),
    )


@lru_cache(maxsize=8192)
def number(value: float) -> str:
    """Write a coordinate, in every language the same."""
    return f"{value + 0:.2f}".rstrip("0").rstrip(".")


@lru_cache(maxsize=256)
def _class(kind: str) -> str:
    return escape(f"ddc-{kind.replace('_', '-')}")


def _title(text: str) -> SafeString:
    return format_html("<title>{}</title>", text) if text else NOTHING
