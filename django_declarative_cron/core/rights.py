"""What a caller from outside may do, and what an access token looks like; pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

PREFIX: Final = "ddc"

_TOKEN: Final = re.compile(PREFIX + r"_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NOBODYS: Final = "0" * 64


class Right(StrEnum):
    """What may be granted to a caller."""

    READ = "read"
    REGISTER = "register"
    WORK = "work"


PERMISSIONS: Final[Mapping[Right, str]] = {
    Right.READ: "django_declarative_cron.view_scheduledtask",
    Right.REGISTER: "django_declarative_cron.register_scheduledtask",
    Right.WORK: "django_declarative_cron.work_taskrun",
}
"""The permission that gives a user each right."""


class Token(NamedTuple):
    """An access token, taken apart.

    Args:
        key: the public part, by which its row is found.
        secret: the part that nobody stores.
    """

    key: str
    secret: str

    def __str__(self) -> str:
        return f"{PREFIX}_{self.key}_{self.secret}"

    @property
    def digest(self) -> str:
        """Give what is stored in place of the secret.

        The secret is 256 random bits, so a slow hash would protect nothing more.
        """
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def fits(self, digest: str | None) -> bool:
        """Tell whether the secret is the one of a digest, in a time that tells nothing.

        Args:
            digest: as stored, ``None`` where nothing is.
        """
        return hmac.compare_digest(self.digest, digest or _NOBODYS) and digest is not None


def read_token(text: str) -> Token | None:
    """Take an access token apart, ``None`` where a text is none.

    Args:
        text: as it was presented.
    """
    found = _TOKEN.fullmatch(text)
    return None if found is None else Token(found[1], found[2])
