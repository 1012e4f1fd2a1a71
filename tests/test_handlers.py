"""Types: found in each app's ``tasks`` module, named by settings, refused when taken twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as project
from django.test import override_settings

import django_declarative_cron
from django_declarative_cron import checks, conf, handlers
from django_declarative_cron.core.declarations.problems import Check
from django_declarative_cron.exceptions import InvalidRegistrationError
from django_declarative_cron.handlers import flaw_of_type, handler

from .http.reports import tasks as reports

APPS = list(project.INSTALLED_APPS)
REPORTS = "tests.http.reports"


def installed(*names: str) -> Any:
    return override_settings(INSTALLED_APPS=[*APPS, *names])


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Write another app with a ``tasks`` module, and return its name."""

    def write(name: str, text: str) -> str:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "tasks.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return name

    return write


def declared(**keys: Any) -> Any:
    return conf.declarations([{"name": "a", "cron": "0 7 * * *", "timezone": "UTC", **keys}])


def test_the_decorator_is_a_public_name() -> None:
    assert django_declarative_cron.handler is handlers.handler
    assert "handler" in django_declarative_cron.__all__


def test_importing_the_decorator_loads_no_model() -> None:
    code = (
        "import sys; from django_declarative_cron import handler;"
        "assert handler('a.b')(print) is print;"
        "print([m for m in sys.modules if m.endswith(('.models', '.store', '.runtime'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_tasks_modules_of_apps_are_looked_through() -> None:
    with installed(REPORTS):
        assert handlers.find("report.generate") is reports.generate
        assert {"cache.warm", "report.fail", "report.generate"} <= set(handlers.known())
        assert list(handlers.problems()) == []


def test_a_type_in_settings_is_a_registered_name_or_a_path() -> None:
    with installed(REPORTS):
        (by_name,) = declared(type="report.generate", args=[1])
        (by_path,) = declared(type="tests.http.reports.tasks.generate")
    assert (by_name.target.text, by_name.target.function) == ("report.generate", reports.generate)
    assert by_name.target.args == (1,)
    assert by_path.target.text == "tests.http.reports.tasks.generate"
    assert by_path.target.function is reports.generate


def test_a_callback_is_never_the_name_of_a_type() -> None:
    with installed(REPORTS):
        (problem,) = conf.problems(
            [{"name": "a", "cron": "0 7 * * *", "callback": "report.generate"}]
        )
    assert problem.check is Check.IMPORT_PATH


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("report.genrate", "Did you mean the registered type `report.generate`?"),
        (
            "zzz.report",
            'Register a function with `@handler("…")` in the module `tasks` of an installed app.'
            ' Write the dotted path of a function, "app.module.function".',
        ),
    ],
)
def test_an_unknown_type_is_refused_with_the_nearest_one(name: str, hint: str) -> None:
    with installed(REPORTS):
        (problem,) = conf.problems([{"name": "a", "cron": "0 7 * * *", "type": name}])
    assert (problem.check, problem.hint) == (Check.IMPORT_PATH, hint)


def test_a_type_that_is_taken_is_a_check_error_that_names_both_places(
    write: Callable[[str, str], str],
) -> None:
    text = """
from django_declarative_cron import handler

@handler("report.generate")
def generate() -> None: ...
"""
    with installed(REPORTS, write("rival_app", text)):
        (message,) = checks.check_handlers()
    assert (message.id, message.level) == ("declarative_cron.E040", 40)
    assert str(message.obj) == "rival_app.tasks"
    assert "'report.generate' of rival_app.tasks.generate is taken by" in message.msg
    assert "tests.http.reports.tasks.generate" in message.msg


def test_a_tasks_module_that_cannot_be_imported_is_warned_of_and_spoils_no_other(
    write: Callable[[str, str], str],
) -> None:
    with installed(write("lacking_app", "import a_module_that_nobody_has"), REPORTS):
        (message,) = checks.check_handlers()
        assert handlers.find("report.generate") is reports.generate
    assert (message.id, message.level) == ("declarative_cron.W040", 30)
    assert "ModuleNotFoundError: No module named 'a_module_that_nobody_has'" in message.msg


def test_looking_for_types_asks_no_database() -> None:
    # Without the mark of a database test, a query is an error.
    with installed(REPORTS):
        assert declared(type="report.generate")


# --- the registry ---


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return an empty registry, which the functions of the module use."""
    handlers.discover()
    monkeypatch.setattr(handlers, "_by_type", {})
    return handlers._by_type


def test_a_registered_function_is_found_and_left_as_it_is(registry: dict[str, Any]) -> None:
    @handler("report.generate")
    def generate(kind: str) -> str:
        return kind * 2

    assert handlers.find("report.generate") is generate
    assert generate("a") == "aa"
    assert handlers.known() == ["report.generate"]


def test_one_function_may_answer_to_several_types(registry: dict[str, Any]) -> None:
    @handler("cache.warm")
    @handler("cache.fill")
    async def warm() -> int:
        return 1

    assert handlers.known() == ["cache.fill", "cache.warm"]
    assert asyncio.run(warm()) == 1


def test_what_was_not_registered_is_not_found(registry: dict[str, Any]) -> None:
    handler("report.generate")(len)
    for name in ("report", "os.system", "report.generate.x", "Report.generate", ""):
        assert handlers.find(name) is None
    assert handlers.nearest("report.genrate") == "report.generate"
    assert handlers.nearest("os.system") is None


def test_a_module_that_is_loaded_anew_may_register_again(registry: dict[str, Any]) -> None:
    def load() -> Any:
        @handler("report.generate")
        def generate() -> None: ...

        return generate

    first, second = load(), load()
    assert first is not second
    assert handlers.find("report.generate") is second


def test_another_function_cannot_take_a_type(registry: dict[str, Any]) -> None:
    handler("report.generate")(len)
    with pytest.raises(InvalidRegistrationError, match=r"is taken by builtins\.len"):
        handler("report.generate")(max)
    assert handlers.find("report.generate") is len


def test_two_callables_without_a_name_are_told_apart(registry: dict[str, Any]) -> None:
    handler("report.generate")(partial(len, "a"))
    with pytest.raises(InvalidRegistrationError, match="is taken by"):
        handler("report.generate")(partial(len, "b"))


@pytest.mark.requirement("002 CRON-04")
@pytest.mark.parametrize("name", ["a", "report.generate", "maintenance.cache_cleanup", "a1.b_2.c3"])
def test_names_of_types(name: str) -> None:
    assert flaw_of_type(name) is None


@pytest.mark.requirement("002 CRON-04")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        *((name, "such as report.generate") for name in ("", ".", "a.", ".a", "a..b", "A.b")),
        *((name, "such as report.generate") for name in ("a-b", "1a", "a b", "a.b\n", "ä", "_a")),
        ("a" * 256, "at most 255"),
        (None, "a text, not NoneType"),
        (len, "a text, not builtin"),
    ],
)
def test_other_values_are_refused_with_the_form(
    name: Any, told: str, registry: dict[str, Any]
) -> None:
    assert told in (flaw_of_type(name) or "")
    with pytest.raises(InvalidRegistrationError, match=told) as caught:
        handler(name)
    assert (caught.value.details["field"], len(registry)) == ("type", 0)
