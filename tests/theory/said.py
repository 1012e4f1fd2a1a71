"""What a verdict says, in short."""

from __future__ import annotations

from collections.abc import Iterable

from django_declarative_cron.theory import Violation


def said(violations: Iterable[Violation]) -> set[str]:
    """Give axiom and position of each violation, ``open a`` for what stayed open."""
    return {
        f"open {each.task or each.axiom}"
        if each.owner == "inconclusive"
        else f"{each.axiom} {each.position}"
        for each in violations
    }


def blamed(violations: Iterable[Violation]) -> dict[str, str]:
    """Give the owner of each axiom that is broken."""
    return {each.axiom: each.owner for each in violations}
