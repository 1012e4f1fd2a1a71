"""Whether the expressions of a set have to be read, or were read before, letter for letter.

The digest of a set changes with each name, each text of an expression, and whatever is said beside
them. So expressions of the set that is active are sound, where whoever made it the active one has
read every one of them: by this version of the package, for its grammars may become stricter, and
by this version of Python, whose tables of characters they ask. What is said beside expressions is
read in each process.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Final

from .. import __version__
from ..core.declaration import Declaration
from ..core.declarations import understand
from .guard import Locked, Member

READER: Final = f"{__version__}, Python {platform.python_version()}"


def require_sound(held: Locked, member: Member, declarations: Sequence[Declaration]) -> None:
    """Demand that every expression of a set can be read; none is read of a set that is known.

    Args:
        held: the locked row of the deployment.
        member: who holds the set.
        declarations: the set.

    Raises:
        DeclarativeCronError: what is wrong in the set first.
    """
    if held.row.digest != member.digest or held.row.read_by != READER:
        understand(declarations)


def note(held: Locked) -> None:
    """Write down, with the next that is written, that this process knows the active set as sound.

    Args:
        held: the locked row of the deployment.
    """
    if held.row.read_by != READER:
        held.row.read_by = READER
        held.save_later(["read_by"])
