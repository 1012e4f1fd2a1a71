"""Following the tutorial to the letter: a folder, two terminals, and what they show."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..conftest import PACKAGE
from ..timeouts import TIMEOUT
from .pages import Block

CUT = "…"
"""What the pages leave out: part of a line, or lines."""

# What is another one at each reading, and what stands for it.
_VARYING = [
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "<instant>"),
    (r"Watered for \d\d:\d\d", "Watered for <minute>"),
    (r"\bCES?T\b", "<zone>"),
    (r"^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) ", "<day> "),
    (r"\bin <?\d+ (ms|s|min|h|d)\b|\b\d+ (ms|s|min|h|d) ago\b|\bnow$|\bnow(?=  )", "<distance>"),
    (r"after <?\d+(\.\d)? m?s\b", "after <duration>"),
    (r"\s+", " "),
]


class Terminal:
    """A terminal in a folder, with ``python`` and ``django-admin`` on its path."""

    def __init__(self, folder: Path) -> None:
        programs = folder.parent / "programs"
        programs.mkdir()
        _program(programs / "python", f'exec {shlex.quote(sys.executable)} "$@"')
        _program(programs / "django-admin", f'exec {shlex.quote(sys.executable)} -m django "$@"')
        foreign = ("DJANGO_SETTINGS_MODULE", "DATABASE_URL", "PYTHONPATH")
        environment = {
            **{name: value for name, value in os.environ.items() if name not in foreign},
            "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
            "PYTHONPATH": str(PACKAGE.parent),
            "PYTHONUNBUFFERED": "1",
            "PYTHONIOENCODING": "utf-8",
        }

        self._options: dict[str, Any] = {
            "cwd": folder,
            "env": environment,
            "text": True,
            "encoding": "utf-8",
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        }

    def run(self, command: str) -> tuple[int, list[str]]:
        """Run one command to its end; give its exit code and what it showed."""
        done = subprocess.run(["sh", "-c", command], **self._options)
        return done.returncode, done.stdout.splitlines()

    def begin(self, command: str) -> Running:
        return Running(subprocess.Popen(["sh", "-c", f"exec {command}"], **self._options))


class Running:
    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child
        self.lines: list[str] = []
        self._seen = 0
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        with self.child.stdout as output:
            for line in output:
                with self._news:
                    self.lines.append(line.rstrip("\n"))
                    self._news.notify_all()

    def shows(self, expected: Sequence[str]) -> None:
        """Wait until lines have come in their order, among others, after those seen before."""
        for line in expected:
            with self._news:
                came = self._news.wait_for(lambda line=line: self._find(line), TIMEOUT)
                assert came, f"{line!r} never came:\n" + "\n".join(self.lines[self._seen :])

    def _find(self, expected: str) -> bool:
        for position in range(self._seen, len(self.lines)):
            if line_matches(expected, self.lines[position]):
                self._seen = position + 1
                return True
        return False

    def interrupt(self) -> int:
        """Press Ctrl-C, and wait for the end; give the exit code."""
        self.child.send_signal(signal.SIGINT)
        code = self.child.wait(TIMEOUT)
        self._reader.join(TIMEOUT)
        return code

    def kill(self) -> None:
        self.child.kill()
        self.child.wait(TIMEOUT)
        self._reader.join(TIMEOUT)


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def dialogue(block: Block) -> list[tuple[str, list[str]]]:
    """Give the commands of a block, each with the lines it is to show."""
    said: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            said.append((line[2:], []))
        else:
            said[-1][1].append(line)
    return said


def lines_match(expected: Sequence[str], shown: Sequence[str]) -> bool:
    if not expected:
        return not shown
    first, *rest = expected
    if first == CUT:
        return any(lines_match(rest, shown[skipped:]) for skipped in range(len(shown) + 1))
    return bool(shown) and line_matches(first, shown[0]) and lines_match(rest, shown[1:])


def line_matches(expected: str, shown: str) -> bool:
    parts = _steady(expected).split(CUT)
    pattern = ".*".join(map(re.escape, parts))
    return re.fullmatch(pattern, _steady(shown)) is not None


def _steady(line: str) -> str:
    for pattern, word in _VARYING:
        line = re.sub(pattern, word, line)
    return line.strip()
