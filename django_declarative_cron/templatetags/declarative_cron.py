"""Filters of our templates."""

from __future__ import annotations

import re

from django import template

register = template.Library()

_ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "td": "cell"}
_TAG = re.compile(r"<(table|thead|tbody|tr|td|th)(\s[^>]*)?>")


@register.filter(is_safe=True)
def table_roles(html: str) -> str:
    """Let the parts of a table keep their roles where style sheets make cards of its rows.

    Args:
        html: of a list.
    """
    return _TAG.sub(_with_role, html)


def _with_role(found: re.Match[str]) -> str:
    name, said = found[1], found[2] or ""
    role = _ROLES.get(name) or ("columnheader" if 'scope="col"' in said else "rowheader")
    return f'<{name} role="{role}"{said}>'
