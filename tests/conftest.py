"""What every test may use, and what the session says about itself."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import django
import hypothesis
import pytest
from django.conf import settings
from django.db import connection, connections
from django.utils import timezone, translation

import django_declarative_cron
from django_declarative_cron import signals

from .database import for_children
from .effort import IS_COMPLETE, SEED
from .process import Process
from .real_clock import refuse, stand_still
from .receiver import SECRET, Post, Receiver

# Where the package is installed, pytest has loaded it already.
_PLUGIN = "django_declarative_cron.testing.plugin"
_LOADED = {each.value for each in entry_points(group="pytest11")}
pytest_plugins = [] if _PLUGIN in _LOADED else [_PLUGIN]

PACKAGE = Path(django_declarative_cron.__file__).parent
CHECKOUT = Path(__file__).parents[1]

# The order of the tests and the examples of Hypothesis are the same each time, so that a change
# is not red by chance. With a number in DDC_SEED both are new, as the nightly run wants it.
# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile(
    "tests",
    deadline=None,
    derandomize=not IS_COMPLETE,
    max_examples=100 if IS_COMPLETE else 40,
)
hypothesis.settings.load_profile("tests")

# Their tests cannot depend on the database, so that each Python runs them on one.
PURE = {"cron", "core", "theory", "test_architecture.py"}

# What they start has an SQLite file of its own, so that they run once and not on each database.
OWN_DATABASE = {"processes/test_example.py", "docs/test_tutorial.py"}

# These folders and files, and the files beside this one, use the database through Django's ORM
# alone. The files of the second set have locks, queries or processes of their own, so they run
# with each database.
ALIKE = {
    *("admin", "callables", "conf", "docs", "fuzz", "http", "management", "monitoring"),
    *("scenarios", "simulation", "testing"),
    *("runtime/runners/test_django_tasks.py", "runtime/runners/test_tracing.py"),
}
EACH_DATABASE = {
    *("admin/test_access_tokens.py", "admin/test_actions.py", "admin/test_costs.py"),
    *("admin/test_held.py", "admin/test_runs.py", "admin/test_schedulers.py"),
    *("admin/test_tasks.py", "http/test_cron.py", "http/test_posted_tasks.py"),
    *("http/test_external_runs.py", "http/test_worker_api.py", "management/test_health.py"),
    *("management/test_held.py", "scenarios/test_bounds.py"),
    *("scenarios/test_database_faults.py", "scenarios/test_reconcile.py"),
    *("scenarios/test_lifecycle.py", "scenarios/test_persistence.py"),
    *("scenarios/test_instances.py", "scenarios/test_interrupted.py", "simulation/test_seeds.py"),
    *("test_checks_database.py", "test_frame.py"),
}

# Their schedulers, servers and databases go by the real clock.
REAL_CLOCK = {"browser", "docs", "http", "processes", "runtime", "store", "monitoring"}


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return how many workers run the tests.

    Tests that are named or pure run without workers, which take seconds to start. The whole suite,
    for which tox asks with ``logical``, has half as many again as there are processors, because
    tests of processes mostly wait.
    """
    if config.option.numprocesses == "logical":
        return (os.cpu_count() or 1) * 3 // 2
    is_quick = not _is_plain(config) or config.option.markexpr == "pure"
    return 0 if is_quick else None


def _is_plain(config: pytest.Config) -> bool:
    """Return whether pytest was started without any path."""
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS


def pytest_configure(config: pytest.Config) -> None:
    """Fix the order, and leave slow tests out where no path is named."""
    if hasattr(signal, "SIGHUP"):
        # Under nohup it is ignored, and every process that a test starts would ignore it too.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if getattr(config.option, "randomly_seed", None) == "default":
        config.option.randomly_seed = SEED
    if _is_plain(config):
        asked = config.option.markexpr
        if asked == "pure":
            # Importing the other tests takes longer than running these.
            config.args = [each for each in config.args if Path(each).name in PURE]
        config.option.markexpr = f"not slow and ({asked})" if asked else "not slow"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line which programs are missing on this machine."""
    said = " ".join(str(each.longrepr) for each in terminalreporter.stats.get("skipped", []))
    missing = sorted(set(re.findall(r"Skipped: (\S+) is not installed", said)))
    if missing:
        terminalreporter.write_line(f"Left out, because it is not installed: {', '.join(missing)}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        path = item.path.relative_to(here)
        if path.parts[0] in PURE:
            item.add_marker("pure")
        if path.parts[0] in REAL_CLOCK or _is_transactional(item):
            item.add_marker("real_clock")
        if OWN_DATABASE.intersection([path.as_posix(), path.parent.as_posix()]):
            item.add_marker("own_database")
        is_alike = len(path.parts) == 1 or ALIKE.intersection([path.parts[0], path.as_posix()])
        if is_alike and path.as_posix() not in EACH_DATABASE:
            item.add_marker("alike")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget what the test before left behind; a hook takes a tenth of the time of fixtures."""
    refuse(unless=item.get_closest_marker("real_clock") is not None)
    # Its last request may have activated a language and a time zone.
    translation.deactivate()
    timezone.deactivate()
    # Each test's failures are logged as if they were the first of their kind.
    signals._repeated.clear()


def pytest_runtest_teardown() -> None:
    """Fail where a test leaves connections of this thread with settings that no thread shares.

    A later test that changes the settings of the project would change nothing for its threads.
    """
    for each in connections.all(initialized_only=True):
        assert each.settings_dict is connections.settings[each.alias]


def _is_transactional(item: pytest.Item) -> bool:
    """Return whether a test commits: then threads or processes go by the real clock beside it."""
    mark = item.get_closest_marker("django_db")
    commits = mark is not None and bool(mark.kwargs.get("transaction"))
    return commits or "transactional_db" in getattr(item, "fixturenames", ())


def pytest_report_header() -> list[str]:
    vendor = settings.DATABASES["default"]["ENGINE"].rpartition(".")[2]
    return [
        f"django: {django.__version__}, {vendor}, USE_TZ={settings.USE_TZ},"
        f" TIME_ZONE={settings.TIME_ZONE},"
        f" admin_interface={'admin_interface' in settings.INSTALLED_APPS}",
        f"seed: {SEED} (DDC_SEED), hashes: {os.environ.get('PYTHONHASHSEED', 'random')}",
        f"package: {PACKAGE}",
    ]


def pytest_sessionstart() -> None:
    """Stop at once where the session would test something else than it was asked to."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's background job ignores Ctrl-C, and so would every process that a test starts.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("DDC_EXPECT_WHEEL") == "1" and "site-packages" not in PACKAGE.parts:
        pytest.exit(f"The installed wheel was to be tested, not {PACKAGE}.", returncode=3)
    expected = os.environ.get("DDC_EXPECT_DJANGO", "")
    if not f"{django.__version__}.".startswith(f"{expected}." if expected else ""):
        pytest.exit(f"Django {expected} was to be tested, not {django.__version__}.", returncode=3)


@pytest.fixture
def project_environment(tmp_path: Path) -> dict[str, str]:
    """Give the environment of a child process that finds package, tests and settings.

    Its database is an empty SQLite file; ``child_environment`` gives that of the test.
    """
    path = os.pathsep.join([str(PACKAGE.parent), str(CHECKOUT)])
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": path,
        "DDC_TEST_DATABASE": "sqlite",
        "DATABASE_URL": f"sqlite:///{tmp_path / 'empty.sqlite3'}",
    }


@pytest.fixture
def child_environment(
    transactional_db: None, project_environment: dict[str, str]
) -> dict[str, str]:
    """Give the environment of a child process that shares the test's database."""
    return {**project_environment, **for_children(connection.settings_dict)}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Give the file that callbacks write to."""
    path = tmp_path / "notes.txt"
    path.touch()
    return path


@pytest.fixture
def start(child_environment: dict[str, str], notes: Path) -> Iterator[Callable[..., Process]]:
    """Start scheduler processes; whatever still runs at the end is killed."""
    processes: list[Process] = []

    def begin(
        *arguments: str,
        python: Sequence[str] = (sys.executable, "-m", "django"),
        **environment: str,
    ) -> Process:
        settings = {
            "DJANGO_SETTINGS_MODULE": "tests.runtime.process_settings",
            "DDC_TEST_NOTES": str(notes),
            "PYTHONUNBUFFERED": "1",
        }
        given = {**child_environment, **settings, **environment}
        processes.append(Process(given, *arguments, python=python))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Give a receiver of webhooks."""
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def post_to(settings: Any) -> Post:
    """Give a function that configures a sink."""

    def configure(url: str, **more: Any) -> None:
        sink = {"url": url, "secret": SECRET, "timeout": 5, **more}
        settings.DECLARATIVE_CRON = {"EVENT_SINK": sink}

    return configure


@pytest.fixture
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package read the same instant each time."""
    stand_still(monkeypatch)
