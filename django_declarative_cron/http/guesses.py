"""What a guess at a token costs: while an address guesses, no query for each."""

from __future__ import annotations

import threading
from typing import Final

from ..core.http_api import read_token
from ..runtime.clock import system_clock
from ..store import access_tokens

_MOMENT: Final = 5.0
"""Seconds that the digests of the valid tokens are kept."""


class Digests:
    """Tell valid tokens from guesses by what was stored a moment ago."""

    def __init__(self) -> None:
        self._book = threading.Lock()
        self._known: dict[str, str] = {}
        self._until = 0.0

    def may_have(self, text: str) -> bool:
        """Return whether a text was a valid token a moment ago; its row says what it is now."""
        token = read_token(text)
        return token is not None and token.fits(self._digests().get(token.key))

    def forget(self) -> None:
        """Ask for the tokens anew at the next guess."""
        with self._book:
            self._until = 0.0

    def _digests(self) -> dict[str, str]:
        with self._book:
            now = system_clock.monotonic()
            if now >= self._until:
                self._known = access_tokens.digests(system_clock.now())
                self._until = now + _MOMENT
            return self._known
