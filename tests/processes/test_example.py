"""The example project does what its README says."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest

from ..conftest import CHECKOUT, PACKAGE
from ..timeouts import TIMEOUT
from .ports import free_port, is_free

MALFORMED = "porcelain-2231.csv"


@dataclass(frozen=True)
class Example:
    """A copy of the example project, as somebody finds it in a clone; child processes run it."""

    root: Path
    environment: dict[str, str]

    @property
    def var(self) -> Path:
        """The folder that the example writes to."""
        return self.root / "var"

    def command(self, script: str, *words: str) -> list[str]:
        return [sys.executable, str(self.root / script), *words]

    def call(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )


def copy(source: Path, target: Path) -> Example:
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


@contextmanager
def running(
    example: Example, output: Path
) -> Iterator[tuple[subprocess.Popen[bytes], int, Callable[[], str]]]:
    """Run the shop on a free port, and end it whatever happens."""
    port = free_port()
    with output.open("wb") as file:
        shop = subprocess.Popen(
            example.command("run.py", "--port", str(port)),
            env=example.environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            yield shop, port, output.read_text
        finally:
            shop.terminate()
            shop.wait(TIMEOUT)


def wait_until(
    happened: Callable[[], bool], shop: subprocess.Popen[bytes], terminal: Callable[[], str]
) -> None:
    """Wait for something that must happen soon, while the shop runs."""
    deadline = time.monotonic() + TIMEOUT
    while not happened():
        assert shop.poll() is None and time.monotonic() < deadline, terminal()
        time.sleep(0.05)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("interface", ["0", "1"])
def test_the_checks_have_nothing_to_remark(example: Example, interface: str) -> None:
    done = example.call(
        "manage.py", "check", "--fail-level", "INFO", SHOP_ADMIN_INTERFACE=interface
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues (0 silenced)" in done.stdout or "no issues (1 silenced)" in done.stdout


@pytest.mark.slow
def test_the_migrations_are_complete(example: Example) -> None:
    done = example.call("manage.py", "makemigrations", "--check", "--dry-run", "shop")
    assert (done.returncode, done.stdout) == (0, "No changes detected in app 'shop'\n")


@pytest.mark.slow
def test_the_tasks_do_what_they_say(example: Example) -> None:
    done = example.call("manage.py", "test", "shop", PYTHONWARNINGS="error")
    assert done.returncode == 0, done.stderr
    found = re.search(r"Ran (\d+) tests", done.stderr)
    assert found is not None
    assert int(found[1]) > 30


@pytest.mark.slow
def test_one_pass_runs_the_tasks_and_leaves_the_malformed_file(ready: Example) -> None:
    done = ready.call("manage.py", "runscheduler", "--once")
    assert done.returncode == 0, done.stderr
    assert names(ready.var / "inbox") == [MALFORMED]
    assert names(ready.var / "processed") == ["northwind-0417.csv", "teahouse-88.csv"]
    assert (ready.var / "heartbeat.json").exists()
    (failure,) = [line for line in done.stderr.splitlines() if "FAILED" in line]
    assert f'{MALFORMED}: on line 4 the quantity "4O" is not a whole number' in failure


@pytest.mark.slow
def test_making_it_ready_again_changes_nothing(ready: Example) -> None:
    files = names(ready.var / "inbox")
    done = ready.call("run.py", "--check", "--port", "0")
    assert "0 sales made up, 0 files put into the inbox." in done.stdout
    assert names(ready.var / "inbox") == files


def test_a_port_that_is_taken_is_named_with_a_free_one(example: Example) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        done = example.call("run.py", "--port", str(port))
    assert done.returncode == 2
    assert re.fullmatch(
        rf"Port {port} of 127\.0\.0\.1 is taken\. Choose another: --port \d+\n", done.stdout
    )


def test_a_missing_package_is_named_with_the_remedy(example: Example) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(example.root / "run.py"), "--port", "0"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "No module named 'django'. Install the package first" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_command_runs_the_shop_and_one_signal_stops_it(
    ready: Example, tmp_path: Path, number: signal.Signals
) -> None:
    with running(ready, tmp_path / "terminal") as (shop, port, terminal):
        wait_until(lambda: "Ctrl-C stops both" in terminal(), shop, terminal)
        assert "admin, admin" in terminal()
        with urlopen(f"http://127.0.0.1:{port}/") as page:
            assert page.url.endswith("/admin/login/?next=/admin/")
        wait_until((ready.var / "heartbeat.json").exists, shop, terminal)
        shop.send_signal(number)
        assert shop.wait(TIMEOUT) == 0
        assert "SchedulerStopped" in terminal()
        assert terminal().endswith("Stopped.\n")
        assert is_free(port)


@pytest.mark.slow
def test_when_one_of_both_ends_the_other_is_stopped(ready: Example, tmp_path: Path) -> None:
    settings = ready.root / "config" / "settings.py"
    settings.write_text(settings.read_text() + "\nSCHEDULED_TASKS = 5\nSILENCED_SYSTEM_CHECKS = []")
    with running(ready, tmp_path / "terminal") as (shop, port, terminal):
        assert shop.wait(TIMEOUT) == 1
        assert "The web site ended by itself, with exit code 1, so" in terminal()
        assert is_free(port)
