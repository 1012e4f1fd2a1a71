"""What a task is declared as: by the registration set, or over HTTP and then by its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..conf import options, stored
from ..core.declaration import Declaration
from ..core.runners import EXTERNAL
from ..exceptions import DeclarativeCronError
from ..models import Origin, ScheduledTask

_MOST: Final = 10_000

_understood: Final[dict[str, Declaration]] = {}


class StrangerError(LookupError):
    """Tell that a task is not in the registration set that is active."""

    def __init__(self) -> None:
        super().__init__("it is not declared in the active registration set")


class UnreadableError(LookupError):
    """Tell that a task registered over HTTP means nothing to this process."""


def declaration_of(row: ScheduledTask, declarations: Mapping[str, Declaration]) -> Declaration:
    """Give what a task is declared as.

    Args:
        row: of the task.
        declarations: the registration set by name.

    Raises:
        StrangerError: the set does not have it.
        UnreadableError: it was registered over HTTP, and its type is not registered here.
    """
    if row.origin == Origin.HTTP:
        return own(row)
    declaration = declarations.get(row.name or "")
    if declaration is None:
        raise StrangerError
    return declaration


def own(row: ScheduledTask) -> Declaration:
    """Give the declaration that a task of HTTP carries in its row, understood once.

    Args:
        row: of the task.

    Raises:
        UnreadableError: its type is not registered in this process, the text is damaged, or
            it is for workers outside and ``EXTERNAL_WORKERS`` is off.
    """
    if is_external(row) and not options().EXTERNAL_WORKERS:
        raise UnreadableError("workers outside do it, and the option EXTERNAL_WORKERS is off")
    known = _understood.get(row.digest)
    if known is None:
        known = _understand(row)
        if len(_understood) >= _MOST:
            _understood.clear()
        _understood[row.digest] = known
    return known


def is_external(row: ScheduledTask) -> bool:
    """Tell whether workers outside do what a task of HTTP asks for.

    Args:
        row: of the task.
    """
    return row.origin == Origin.HTTP and _said(row).get("runner") == EXTERNAL


def _said(row: ScheduledTask) -> dict[str, Any]:
    return row.declaration if isinstance(row.declaration, dict) else {}


def _understand(row: ScheduledTask) -> Declaration:
    try:
        return stored(_said(row).get("entry"), is_external=is_external(row))
    except DeclarativeCronError as error:
        raise UnreadableError(error.message) from error
