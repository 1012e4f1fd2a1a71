"""The few parts that our pictures are made of."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

NOTHING = SafeString("")


def drawing(kind: str, width: int, height: int, label: str, parts: Iterable[str]) -> SafeString:
    """Put parts together to a picture that is as wide as there is room.

    Args:
        kind: names its class.
        width: of the coordinates of its parts.
        height: of the coordinates of its parts.
        label: what it shows, for those who do not see it.
        parts: from back to front.
    """
    return format_html(
        '<svg class="ddc-picture ddc-{}" viewBox="0 0 {} {}" preserveAspectRatio="none"'
        ' role="img" aria-label="{}" focusable="false">{}</svg>',
        kind,
        width,
        height,
        label,
        joined(parts),
    )


def rect(kind: str, x: float, y: float, width: float, height: float, title: str = "") -> SafeString:
    """Give a rectangle, with a text for whoever points at it.

    Args:
        kind: names its class.
        x: of its left side.
        y: of its upper side.
        width: at least 0.
        height: at least 0.
        title: empty for none.
    """
    return format_html(
        '<rect class="ddc-{}" x="{}" y="{}" width="{}" height="{}">{}</rect>',
        kind.replace("_", "-"),
        number(x),
        number(y),
        number(width),
        number(height),
        _title(title),
    )


def line(kind: str, start: tuple[float, float], end: tuple[float, float], title: str = "") -> str:
    """Give a line that stays as thin as it is, however the picture is stretched.

    Args:
        kind: names its class.
        start: x and y.
        end: x and y.
        title: empty for none.
    """
    return format_html(
        '<line class="ddc-{}" x1="{}" y1="{}" x2="{}" y2="{}"'
        ' vector-effect="non-scaling-stroke">{}</line>',
        kind,
        *map(number, (*start, *end)),
        _title(title),
    )


def joined(parts: Iterable[str]) -> SafeString:
    """Join parts that are safe already, and escape those that are not.

    Args:
        parts: in their order.
    """
    return format_html_join("", "{}", ((part,) for part in parts))


def number(value: float) -> str:
    """Write a coordinate, in every language the same.

    Args:
        value: finite.
    """
    return f"{value + 0:.2f}".rstrip("0").rstrip(".")


def _title(text: str) -> SafeString:
    return format_html("<title>{}</title>", text) if text else NOTHING
