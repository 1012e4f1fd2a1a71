"""The package as an installation: what is in it, and what loading it does."""

from __future__ import annotations

import configparser
import importlib
import tomllib
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path

import pytest

import django_declarative_cron

from .architecture import PURE
from .conftest import CHECKOUT, PACKAGE
from .process import run_python

# Audit events that a query or a process cannot avoid on SQLite; threads have none in Python 3.11.
EFFECTS = """
import sys, threading

EFFECTS = {"sqlite3.connect", "socket.connect", "subprocess.Popen", "os.fork", "os.posix_spawn"}
seen = []
sys.addaudithook(lambda event, _: seen.append(event) if event in EFFECTS else None)
start = threading.Thread.start
threading.Thread.start = lambda thread: (seen.append(thread), start(thread))
"""
LOAD = """
import importlib, pkgutil
import django
django.setup()
import django_declarative_cron as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
"""
PURE_PARTS = sorted(part for part in PURE if list(PACKAGE.glob(f"{part}*")))


def run(code: str, environment: dict[str, str]) -> str:
    child = run_python("-W", "error", "-c", code, env=environment)
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()


def test_loading_asks_no_database_and_starts_nothing(project_environment: dict[str, str]) -> None:
    """P41, P79: so no command but runscheduler begins anything."""
    assert run(f"{EFFECTS}{LOAD}print(seen)", project_environment) == "[]"


@pytest.mark.slow
@pytest.mark.parametrize(
    "effect",
    [
        "from django.db import connection; connection.ensure_connection()",
        "import threading; threading.Thread(target=int).start()",
        "import subprocess, sys; subprocess.run([sys.executable, '-c', ''])",
    ],
)
def test_an_effect_of_loading_would_be_seen(
    effect: str, project_environment: dict[str, str]
) -> None:
    code = f"{EFFECTS}\nimport django; django.setup()\n{effect}\nprint(seen)"
    assert run(code, project_environment) != "[]"


def test_the_root_loads_neither_django_nor_a_model(project_environment: dict[str, str]) -> None:
    code = "import sys, django_declarative_cron as package; package.DeclarativeCronError; "
    assert run(code + "print('django' in sys.modules)", project_environment) == "False"


@pytest.mark.parametrize("part", PURE_PARTS)
def test_the_core_loads_without_django(part: str, project_environment: dict[str, str]) -> None:
    code = f"""
import importlib, pkgutil, sys
part = importlib.import_module("django_declarative_cron.{part}")
for module in pkgutil.walk_packages(getattr(part, "__path__", []), part.__name__ + "."):
    importlib.import_module(module.name)
print("django" in sys.modules)
"""
    assert run(code, project_environment) == "False"


@pytest.mark.requirement("001 Scheduler Interface/1")
def test_the_public_names_are_listed_and_found() -> None:
    for name in django_declarative_cron.__all__:
        assert name in dir(django_declarative_cron)
        assert getattr(django_declarative_cron, name)


PROMISED = {
    "": ["Scheduler"],
    ".core.retry": ["RetryPolicy"],
    ".core.state": ["deserialize", "serialize"],
    ".cron": ["CronExpression", "parse"],
    ".http.urls": ["urlpatterns"],
    ".models": [
        *("ScheduledTask", "SchedulerInstance", "SchedulerState", "TaskOverride", "TaskRun"),
    ],
    ".signals": ["task_run_started"],
    ".testing": ["Simulation"],
    ".theory": ["check"],
}


@pytest.mark.parametrize("module", PROMISED)
def test_the_names_that_were_promised_stay_where_they_are(module: str) -> None:
    found = importlib.import_module(f"django_declarative_cron{module}")
    assert [name for name in PROMISED[module] if not hasattr(found, name)] == []


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Schedular'"):
        _ = django_declarative_cron.Schedular


@pytest.mark.parametrize(("field", "language"), [("AutoField", "de"), ("BigAutoField", "uk")])
def test_p80_the_migrations_are_complete_for_every_project(
    field: str, language: str, project_environment: dict[str, str]
) -> None:
    environment = {
        **project_environment,
        "DDC_TEST_AUTO_FIELD": f"django.db.models.{field}",
        "DDC_TEST_LANGUAGE": language,
    }
    words = ("-m", "django", "makemigrations", "--check", "--dry-run")
    child = run_python(*words, env=environment)
    assert (child.returncode, child.stdout) == (0, "No changes detected\n"), child.stderr


def test_the_version_is_that_of_the_distribution() -> None:
    try:
        installed = version("django-declarative-cron")
    except PackageNotFoundError:
        pytest.skip("the package was not installed; tox installs its wheel")
    assert installed == django_declarative_cron.__version__


def test_the_distribution_carries_the_whole_package() -> None:
    assert _content(PACKAGE) == _content(CHECKOUT / PACKAGE.name)
    assert "py.typed" in _content(PACKAGE)


def test_the_distribution_carries_nothing_but_the_package() -> None:
    try:
        installed = files("django-declarative-cron") or []
    except PackageNotFoundError:
        pytest.skip("the package was not installed; tox installs its wheel")
    tops = {path.parts[0] for path in installed if path.suffix != ".pth"}
    assert {top for top in tops if not top.endswith(".dist-info")} <= {PACKAGE.name}


def _content(package: Path) -> set[str]:
    paths = (path.relative_to(package) for path in package.rglob("*") if path.is_file())
    # What tools leave behind is not the package's.
    return {
        path.as_posix()
        for path in paths
        if not any(part == "__pycache__" or part.startswith(".") for part in path.parts)
    }


def test_the_audit_looks_at_every_extra_that_is_not_compiled() -> None:
    environments = configparser.ConfigParser(interpolation=None)
    environments.read(CHECKOUT / "tox.ini", encoding="utf-8")
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    audited = environments["testenv:audit"]["extras"].split()
    assert audited == sorted(project["optional-dependencies"].keys() - {"mysql"})
