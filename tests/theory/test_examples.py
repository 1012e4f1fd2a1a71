"""The thirty traces of the design get the verdicts of the design, in both readings."""

from __future__ import annotations

from typing import Literal

import pytest

from django_declarative_cron.theory import check

from .examples import EXAMPLES, Example
from .notation import CRONS, Record, trace
from .said import said

Mode = Literal["letter", "repaired"]
MODES: tuple[Mode, Mode] = ("letter", "repaired")

both_modes = pytest.mark.parametrize("mode", MODES)
every_example = pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda example: str(example.number)
)


@pytest.mark.requirement("004 EA1", "004 S1")
@both_modes
@every_example
def test_an_example_gets_its_verdict(example: Example, mode: Mode) -> None:
    assert said(check(example.records, mode)) == example.expected(mode)


STATING = [each for each in EXAMPLES if "Due" in each.text and "'" not in each.text]


@both_modes
@pytest.mark.parametrize("cron", ["* * * * *", "59 23 31 12 *"])
@pytest.mark.parametrize("example", STATING, ids=lambda example: str(example.number))
def test_stated_dues_hold_whatever_the_cron_expression_says(
    example: Example, cron: str, mode: Mode
) -> None:
    records = trace(example.text, dict.fromkeys("abz", cron))
    for record in records:
        record.pop("cron", None)
    assert said(check(records, mode)) == example.expected(mode)


# Made, a due comes before what happens at its instant: example 20 has them in one position.
MADE = [example for example in EXAMPLES if example.number != 20]


@both_modes
@pytest.mark.parametrize("example", MADE, ids=lambda example: str(example.number))
def test_made_pulses_say_what_stated_ones_say(example: Example, mode: Mode) -> None:
    expected = check(example.records, mode)
    found = check(without_pulses(example), mode)
    assert {(v.axiom, v.at, v.owner) for v in found} == {(v.axiom, v.at, v.owner) for v in expected}


def without_pulses(example: Example) -> list[Record]:
    """Leave dues and retries to the judge; cron expressions name the minutes of the dues."""
    minutes: dict[str, set[int]] = {}
    for record in example.records:
        if record["event"] == "Due":
            written = "a'" if record.get("cron") == CRONS["a'"] else record["task"]
            minutes.setdefault(written, set()).add(record["at"].minute)
    crons = {
        task: f"{','.join(map(str, sorted(named)))} * * * *" for task, named in minutes.items()
    }
    never = dict.fromkeys("abz", "59 * * * *")
    records = trace(example.text, never | crons)
    kept = [each for each in records[:-1] if each["event"] not in ("Due", "Tick", "RetryDue")]
    end = {"at": records[-1]["at"], "event": "Tick"}
    return [*kept, *(records[-1:] if records[-1]["event"] not in ("Due", "RetryDue") else []), end]


def test_all_examples_are_there() -> None:
    assert [example.number for example in EXAMPLES] == list(range(1, 31))
