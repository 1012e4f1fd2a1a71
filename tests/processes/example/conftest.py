"""The example as somebody finds it in a clone: a copy of its own, run by child processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ...conftest import CHECKOUT, PACKAGE


@dataclass(frozen=True)
class Example:
    """A copy of the example project.

    Args:
        root: the copy.
        environment: of its processes.
    """

    root: Path
    environment: dict[str, str]

    @property
    def var(self) -> Path:
        """Give the folder that the example writes to."""
        return self.root / "var"

    def command(self, script: str, *words: str) -> list[str]:
        """Give the command line of a script."""
        return [sys.executable, str(self.root / script), *words]

    def call(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a script to its end."""
        return subprocess.run(
            self.command(*words),
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )


def copy(source: Path, target: Path) -> Example:
    """Copy an example."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DJANGO_")}
    return Example(target, {**environment, "PYTHONPATH": str(PACKAGE.parent)})


@pytest.fixture(scope="session")
def _new(tmp_path_factory: pytest.TempPathFactory) -> Example:
    example = copy(CHECKOUT / "example_project", tmp_path_factory.mktemp("new") / "example")
    shutil.rmtree(example.var, ignore_errors=True)
    return example


@pytest.fixture(scope="session")
def _ready(tmp_path_factory: pytest.TempPathFactory, _new: Example) -> Example:
    example = copy(_new.root, tmp_path_factory.mktemp("ready") / "example")
    done = example.call("run.py", "--check", "--port", "0")
    assert done.returncode == 0, done.stderr
    return example


@pytest.fixture
def example(_new: Example, tmp_path: Path) -> Example:
    """Give a copy as fresh as in a new clone."""
    return copy(_new.root, tmp_path / "example_project")


@pytest.fixture
def ready(_ready: Example, tmp_path: Path) -> Example:
    """Give a copy whose database is ready."""
    return copy(_ready.root, tmp_path / "example_project")
