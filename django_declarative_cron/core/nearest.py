"""The known word that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# The effort of a comparison grows with the square of the length.
_LONGEST = 80


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Propose the known word that looks most like another one, whatever their case.

    Args:
        word: what was written.
        known: what could have been meant.
    """
    by_folded = {each.casefold(): each for each in known if each != word}
    matches = get_close_matches(word[:_LONGEST].casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def listed(words: Iterable[str], joint: str = ", ") -> str:
    """Quote words as code and join them."""
    return joint.join(f"`{word}`" for word in words)
