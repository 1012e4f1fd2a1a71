"""Filters of our templates."""

from __future__ import annotations

import re
from typing import Any

from django import template
from django.utils.formats import localize

register = template.Library()

_ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "td": "cell"}
_TAG = re.compile(r"<(table|thead|tbody|tr|td|th)(\s[^>]*)?>")


@register.filter(is_safe=True)
def table_roles(html: str) -> str:
    """Let the parts of a table keep their roles where style sheets make cards of its rows."""
    return _TAG.sub(_with_role, html)


@register.filter(is_safe=True)
def told_as_counted(html: str, changes: Any) -> str:
    """Say of a history that it has more rows, where counting them ended at the deepest shown."""
    counted = getattr(changes.paginator, "counted", "")
    said = re.escape(str(localize(changes.result_count)))
    return re.sub(rf"(?<!\w){said}(?=\s)", counted, html) if counted else html


def _with_role(found: re.Match[str]) -> str:
    name, said = found[1], found[2] or ""
    role = _ROLES.get(name) or ("columnheader" if 'scope="col"' in said else "rowheader")
    return f'<{name} role="{role}"{said}>'
