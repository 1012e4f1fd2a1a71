"""Which of two releases is the older one."""

from __future__ import annotations

import pytest

from django_declarative_cron.core.reconcile import is_older


@pytest.mark.parametrize(
    ("release", "other", "older"),
    [
        ("1.9", "1.10", True),
        ("1.10", "1.9", False),
        ("v1.2.3", "1.2.4", True),
        ("1.2", "1.2.0", False),
        ("1.2", "1.2.1", True),
        ("2026-11-03", "2026-11-28", True),
        ("20261128", "20261103", False),
        ("7", "7", False),
        ("007", "8", True),
        ("1.0rc1", "1.0", None),
        ("0a1b2c3", "1234567", None),
        ("main", "1.0", None),
        ("", "1.0", None),
        ("1.", "1.0", None),
        ("١.٢", "1.3", None),
    ],
)
def test_releases_of_numbers_are_compared_by_them(
    release: str, other: str, older: bool | None
) -> None:
    assert is_older(release, other) is older
