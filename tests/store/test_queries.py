"""What queries of tasks find, with each database."""

from __future__ import annotations

import pytest

from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.store.queries import tagged
from django_declarative_cron.testing import Simulation

TAGS = {
    "a": ["money"],
    "b": ["Money", "mail"],
    "c": ["grün", 'say "mail"'],
    "d": ["mon", 'a"b', "x,"],
    "e": [","],
    "f": ["100%", "back\\slash"],
}


@pytest.mark.parametrize(
    ("tag", "names"),
    [
        ("money", ["a"]),
        ("Money", ["b"]),
        ("mail", ["b"]),
        ("mon", ["d"]),
        ("grün", ["c"]),
        ('say "mail"', ["c"]),
        ("100%", ["f"]),
        ("back\\slash", ["f"]),
        ("b", []),
        (",", ["e"]),
        ("", []),
        ("1", []),
    ],
)
def test_a_tag_is_found_whole_and_letter_for_letter(db: None, tag: str, names: list[str]) -> None:
    Simulation(start="2026-01-01T00:00:00Z").initialize(
        [
            {"name": name, "cron": "@yearly", "callback": "os.getpid", "tags": tags}
            for name, tags in TAGS.items()
        ]
    )
    found = tagged(ScheduledTask.objects.order_by("name"), tag)
    assert [task.name for task in found] == names
