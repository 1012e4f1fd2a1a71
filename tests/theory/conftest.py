"""The literal reading of the theory is for tests: its formulas cannot be satisfied."""

from __future__ import annotations

from django_declarative_cron.theory import checker

from .literal import LiteralState

checker.READINGS["letter"] = LiteralState
