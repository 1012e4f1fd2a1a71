"""What a task is declared as: by the registration set, or over HTTP and then by its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..conf import stored
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
        UnreadableError: its type is not registered in this process, or the text is damaged.
    """
    known = _understood.get(row.digest)
    if known is None:
        known = _understand(row)
        if len(_understood) >= _MOST:
            _understood.clear()
        _understood[row.digest] = known
    return known


def _understand(row: ScheduledTask) -> Declaration:
    declaration = row.declaration if isinstance(row.declaration, dict) else {}
    is_external = declaration.get("runner") == EXTERNAL
    try:
        return stored(declaration.get("entry"), is_external=is_external)
    except DeclarativeCronError as error:
        raise UnreadableError(error.message) from error
