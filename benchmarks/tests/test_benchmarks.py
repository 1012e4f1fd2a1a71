"""Each module measures in its smallest size, and the table says how the figures compare."""

from __future__ import annotations

import importlib

import pytest

from benchmarks.__main__ import LONG, MODULES
from benchmarks.contenders import CONTENDERS
from benchmarks.figures import Figure, Row, Table


@pytest.mark.parametrize("name", [*MODULES, *LONG])
def test_a_module_measures_the_product_and_says_why_it_measures_a_peer_not(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    rows = module.measure(small=True)
    product = {row.what: row for row in rows if row.contender == "product"}
    assert set(product) == {figure.what for figure in module.FIGURES}
    assert [row.note for row in product.values() if row.value is None] == []
    failed = [row.note for row in rows if "failed" in row.note or "more than" in row.note]
    assert failed == []


@pytest.mark.parametrize("name", [name for name in MODULES if name != "runners"])
def test_every_peer_is_named_by_every_module(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    notes = {
        contender
        for constant in ("NO_RECORD", "NO_STANDBY", "NO_PAGES")
        for contender in getattr(module, constant, ())
    }
    assert set(CONTENDERS) - {"product"} <= notes | set(getattr(module, "CONTENDERS", ()))


DURATION = Figure("a pass", "ms", target=25, statements=3)
RATE = Figure("runs", "per second", target=2000, is_rate=True)


@pytest.mark.parametrize(
    ("figure", "row", "is_reached"),
    [
        (DURATION, Row("a pass", 25, 3), True),
        (DURATION, Row("a pass", 25.1, 3), False),
        (DURATION, Row("a pass", 25, 4), False),
        (DURATION, Row("a pass", note="failed"), False),
        (RATE, Row("runs", 2000), True),
        (RATE, Row("runs", 1999), False),
    ],
)
def test_a_target_is_reached_by_value_and_statements(
    figure: Figure, row: Row, is_reached: bool
) -> None:
    assert figure.is_reached(row) is is_reached


def test_a_ratio_says_how_many_times_better_the_product_is() -> None:
    table = Table()
    rows = [
        Row("a pass", 20, 2, contender="product"),
        Row("a pass", 100, contender="apscheduler"),
        Row("runs", 3000, contender="product"),
        Row("runs", 1500, note="of one worker", contender="django_q2"),
        Row(note="keeps no record", contender="celery_beat"),
    ]
    table.add((DURATION, RATE), rows)
    markdown = table.markdown()
    assert "| 20 ms, 2 statements | 100 ms (5×) | – [1] |" in markdown
    assert "| 1,500 per second (2×) [2] |" in markdown
    assert "1. django-celery-beat: keeps no record.\n2. django-q2: of one worker." in markdown
    assert table.missed() == []


def test_a_missed_target_is_shown() -> None:
    table = Table()
    table.add((DURATION,), [Row("a pass", 30, 2, contender="product")])
    assert "**30 ms, 2 statements, missed**" in table.markdown()
    assert table.missed() == ["a pass"]
