"""A contender's process, as the one that measures sees it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import environments
from .contenders import Contender
from .parts import Part, Sample
from .server import Server

CHECKOUT = Path(__file__).resolve().parents[2]


class WorkerError(Exception):
    """A contender's process died, or took too long."""


class Worker:
    """One contender's process.

    Args:
        part: what is measured.
        contender: who is measured.
        size: of the part.
        server: makes its database.
        patience: seconds that it may take for one answer.
    """

    def __init__(
        self, part: Part, contender: Contender, size: int, server: Server, patience: float
    ) -> None:
        self.contender, self.size = contender, size
        self._patience, self._server = patience, server
        self._folder = tempfile.TemporaryDirectory(prefix="ddc-bench-")
        self._database = server.new_database()
        self._log = Path(self._folder.name) / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    str(environments.python(contender)),
                    *("-m", "benchmarks.harness.serving", part.name, contender.id),
                ],
                cwd=self._folder.name,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.versions: dict[str, str] = {}

    def prepare(self) -> None:
        """Let it get ready."""
        self.versions = self._ask("versions")
        self._ask("prepare", size=self.size)

    def measure(self) -> list[Sample]:
        """Let it do the work once more."""
        return [Sample(**each) for each in self._ask("measure")]

    def close(self) -> None:
        """Let it go, whatever it does."""
        try:
            if self._process.poll() is None:
                self._ask("close")
        except WorkerError:
            pass
        finally:
            self.end()

    def end(self) -> None:
        """End it at once with every process it began, and remove what it had."""
        self._kill()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                if stream:
                    stream.close()
        self._server.drop(self._database)
        self._folder.cleanup()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _environment(self) -> dict[str, str]:
        own = {
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONDONTWRITEBYTECODE": "",
            "BENCHMARK_SQLITE": str(Path(self._folder.name) / "db.sqlite3"),
            "BENCHMARK_FOLDER": self._folder.name,
        }
        return {**os.environ, **own, **self._database}

    def _ask(self, do: str, **more: object) -> Any:
        assert self._process.stdin and self._process.stdout
        with suppress(BrokenPipeError):  # It died; the answer that does not come tells why.
            self._process.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
            self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], self._patience)[0]:
            self._kill()
            raise WorkerError(f"took more than {self._patience:g} s to {do}")
        answer = self._process.stdout.readline()
        if not answer:
            self._process.wait()
            said = self._log.read_text(errors="replace").strip().splitlines()
            raise WorkerError(f"died: {said[-1] if said else self._process.returncode}")
        return json.loads(answer)
