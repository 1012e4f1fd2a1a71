"""The tutorial, followed to the letter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import sleep

import pytest

from .pages import DOCS, Block
from .walk import Running, Terminal, dialogue, lines_match

TUTORIAL = DOCS["tutorial.md"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="its terminals are those of a shell")


class Reader:
    """Somebody who does what the tutorial says, and looks whether it is true."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.second = Terminal(folder)
        self.scheduler: Running | None = None

    def follow(self, block: Block) -> None:
        """Do what one block says."""
        kind, _, what = block.marker.partition(": ")
        match kind:
            case "run":
                self._run(block, int(what.removeprefix("exits ") or 0))
            case "write":
                (self.folder / what).write_text(block.text, encoding="utf-8")
            case "append":
                with (self.folder / what).open("a", encoding="utf-8") as file:
                    file.write(f"\n{block.text}")
            case "change":
                change(self.folder / what, block)
            case "scheduler":
                ((command, lines),) = dialogue(block)
                self.scheduler = self.second.begin(command)
                self.scheduler.shows(lines)
            case "scheduler says":
                self._running.shows(block.text.splitlines())
            case "scheduler stops":
                assert self._running.interrupt() == 0
                self._running.shows(block.text.splitlines())
            case "by hand":
                assert what, f"{block} does not say why"
            case _:
                raise AssertionError(f"{block} does not say what it is")

    @property
    def _running(self) -> Running:
        assert self.scheduler is not None
        return self.scheduler

    def _run(self, block: Block, code: int) -> None:
        said = dialogue(block)
        for command, expected in said:
            exit_code, shown = self._answer(command)
            # The commands write to a pipe here, which gets no empty lines between parts.
            expected, shown = list(filter(None, expected)), list(filter(None, shown))
            assert lines_match(expected, shown), f"{block}: {command}\n" + "\n".join(shown)
            assert exit_code == (code if (command, expected) == said[-1] else 0), command

    def _answer(self, command: str) -> tuple[int, list[str]]:
        """Run a command; one that came upon a run of the scheduler again in the next minute."""
        if "cron run" not in command:
            return self.second.run(command)
        for _ in range(5):
            _wait_for_the_start_of_a_minute()
            exit_code, shown = self.second.run(command)
            if not any("runs already since" in line for line in shown):
                break
            _wait_for_the_end_of_a_minute()
        return exit_code, shown


def _wait_for_the_start_of_a_minute() -> None:
    """Let the retry of a failure, 25 seconds after it, come before the next full minute."""
    while datetime.now(UTC).second >= 20:
        sleep(0.5)


def _wait_for_the_end_of_a_minute() -> None:
    while datetime.now(UTC).second < 20:
        sleep(0.5)


def change(path: Path, block: Block) -> None:
    """Change a file as a difference says."""
    lines = block.text.splitlines(keepends=True)
    old, new = ("".join(each[1:] for each in lines if each[0] == sign) for sign in "-+")
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{block}: what is to be changed is not there"
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Sit down before an empty folder."""
    folder = tmp_path / "garden"
    folder.mkdir()
    reader = Reader(folder)
    yield reader
    if reader.scheduler is not None:
        reader.scheduler.kill()


def test_every_block_says_what_it_is() -> None:
    assert all(block.marker for block in TUTORIAL.blocks)
    assert [block.marker for block in TUTORIAL.blocks].index("scheduler") > 7


@pytest.mark.slow
def test_it_is_true_to_the_letter(reader: Reader) -> None:
    for block in TUTORIAL.blocks:
        reader.follow(block)
    barrel = int((reader.folder / "barrel.txt").read_text())
    assert 40 < barrel <= 50


@pytest.mark.parametrize(
    ("expected", "shown", "right"),
    [
        # What varies may vary.
        (
            ["Mon 2026-11-30 04:30  CET  in 2 d"],
            ["Tue 2031-07-01 04:30  CEST   in 14 h"],
            True,
        ),
        (
            ["… TaskRunStarted at=… attempt=1 …"],
            ["10:00 INFO TaskRunStarted at=x attempt=1 a=b"],
            True,
        ),
        (["water failed after 1 ms: …"], ["water failed after 2.5 s: RuntimeError"], True),
        # All else is compared.
        (["2 tasks: 2 active."], ["2 tasks: 1 active."], False),
        (
            ["… TaskRunStarted at=… attempt=1 …"],
            ["10:00 INFO TaskRunStarted at=x attempt=2 a=b"],
            False,
        ),
        (["Watered for 14:02; 0 litres left."], ["Watered for 14:02; 1 litres left."], False),
        (["At 04:30."], ["At 05:30."], False),
        # A cut stands for any number of lines.
        (["a", "…", "c"], ["a", "b", "b", "c"], True),
        (["a", "…"], ["a"], True),
        (["a", "c"], ["a", "b", "c"], False),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
    ],
)
def test_what_is_shown_is_compared_with_the_page(
    expected: list[str], shown: list[str], right: bool
) -> None:
    assert lines_match(expected, shown) is right
