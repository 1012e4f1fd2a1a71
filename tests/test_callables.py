"""What runs: paths that lead nowhere are refused with what was probably meant."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from django.core.management import BaseCommand, CommandError, get_commands

from django_declarative_cron.callables import ManagementCommand, Targets
from django_declarative_cron.core.declarations.problems import Check, UnresolvableError

from .callables import jobs


def refusal(given: Any, **how: Any) -> UnresolvableError:
    with pytest.raises(UnresolvableError) as caught:
        Targets(**how).callback(given)
    return caught.value


JOBS = "tests.callables.jobs"


@pytest.mark.parametrize(
    ("path", "reason", "hint"),
    [
        (
            f"{JOBS}.send_mial",
            f"`{JOBS}.send_mial` not found; `send_mail` exists",
            f"Did you mean `{JOBS}.send_mail`?",
        ),
        (
            f"{JOBS}.Shop.clsoe",
            f"`{JOBS}.Shop.clsoe` not found; `close` exists",
            f"Did you mean `{JOBS}.Shop.close`?",
        ),
        (
            "tests.callables.jbos.send_mail",
            "`tests.callables.jbos` not found; `jobs` exists",
            "Did you mean `tests.callables.jobs`?",
        ),
        (
            "django_declarative_corn.conf.options",
            "`django_declarative_corn` not found; `django_declarative_cron` exists",
            "Did you mean `django_declarative_cron`?",
        ),
    ],
)
def test_p92_the_nearest_name_is_proposed(path: str, reason: str, hint: str) -> None:
    error = refusal(path)
    assert (error.check, error.reason, error.hint) == (Check.IMPORT_PATH, reason, hint)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("send_mail", "'send_mail' is not a dotted path"),
        ("", "'' is not a dotted path"),
        ("tests.callables.jobs:send_mail", "'tests.callables.jobs:send_mail' is not a dotted path"),
        (".jobs.send_mail", "'.jobs.send_mail' is not a dotted path"),
        ("../jobs.send_mail", "'../jobs.send_mail' is not a dotted path"),
        (f"{JOBS}.zzzzzz", f"`{JOBS}.zzzzzz` not found"),
        (JOBS, f"`{JOBS}` is a module"),
        (f"{JOBS}.number", f"`{JOBS}.number` is a int, which cannot be called"),
        (f"{JOBS}.Command", f"`{JOBS}.Command` is the class of a management command"),
        (
            f"{JOBS}.yields",
            f"`{JOBS}.yields` is a generator function: calling it runs none of its code",
        ),
        (
            f"{JOBS}.yields_later",
            f"`{JOBS}.yields_later` is a generator function: calling it runs none of its code",
        ),
        (
            f"{JOBS}.yields_when_called",
            f"`{JOBS}.yields_when_called` is a generator function: "
            "calling it runs none of its code",
        ),
        (
            f"{JOBS}.Shop",
            f"`{JOBS}.Shop` is a class: calling it makes an instance and does nothing with it",
        ),
        (
            f"{JOBS}.computed",
            f"cannot be imported: importing `{JOBS}.computed` raised "
            "RuntimeError: nothing to compute with",
        ),
        (
            "tests.callables.broken.send",
            "cannot be imported: importing `tests.callables.broken` raised "
            "RuntimeError: no connection",
        ),
        (
            "tests.callables.lacking.send",
            "cannot be imported: importing `tests.callables.lacking` raised "
            "ModuleNotFoundError: No module named 'a_package_nobody_has'",
        ),
        (
            "tests.callables.leaving.send",
            "cannot be imported: importing `tests.callables.leaving` raised SystemExit: 3",
        ),
    ],
)
def test_paths_that_lead_to_nothing_that_runs(path: str, reason: str) -> None:
    error = refusal(path)
    assert (error.check, error.reason) == (Check.IMPORT_PATH, reason)
    assert error.hint


def test_a_broken_module_is_imported_once_in_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "calls", [])
    targets = Targets()
    for name in ("one", "two", "one"):
        with pytest.raises(UnresolvableError, match="no connection"):
            targets.callback(f"tests.callables.broken.{name}")
    assert jobs.calls == [("broken imported",)]
    assert "tests.callables.broken" not in sys.modules


@pytest.mark.parametrize(
    ("callback", "kind"),
    [
        (lambda: None, "a lambda"),
        (jobs.half, "a partial"),
        (jobs.shop, "an instance"),
        (jobs.bound, "a method of an instance"),
        (jobs.shadowed, "not what its module has under that name"),
    ],
)
def test_p93_callables_in_settings_must_be_importable(callback: Any, kind: str) -> None:
    error = refusal(callback, importable_only=True)
    assert error.check == Check.NOT_IMPORTABLE
    assert error.reason.startswith(f"is {kind} (`")
    assert error.reason.endswith("`), which no dotted path leads to")
    assert "dotted path" in error.hint
    assert Targets().callback(callback).function == callback


def test_p93_a_nested_function_in_settings() -> None:
    def inner() -> None: ...

    assert refusal(inner, importable_only=True).reason.startswith("is a nested function (`")


@pytest.mark.parametrize("callback", [jobs.send_mail, jobs.Shop.close, jobs.Shop.open, len])
def test_importable_callables_are_fine_in_settings(callback: Any) -> None:
    assert Targets(importable_only=True).callback(callback).function == callback


def test_an_object_that_denies_having_a_name_has_that_of_its_class() -> None:
    class Nameless:
        __module__ = None  # type: ignore[assignment]

        def __call__(self) -> None: ...

    assert Targets().callback(Nameless()).text == "Nameless"
    assert refusal(Nameless(), importable_only=True).check == Check.NOT_IMPORTABLE


class Leave(BaseCommand):
    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("code", type=int)

    def handle(self, *args: Any, code: int, **options: Any) -> None:
        jobs.calls.append(("leave", code))
        sys.exit(code)


@pytest.fixture
def leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(get_commands(), "leave", Leave())
    monkeypatch.setattr(jobs, "calls", [])


@pytest.mark.usefixtures("leave")
class TestManagementCommand:
    def test_it_is_known_by_its_words(self) -> None:
        target = Targets().command(("leave", "two words"))
        assert (target.text, target.is_command) == ("leave 'two words'", True)
        assert hash(target.function) == hash(ManagementCommand(("leave", "two words")))

    def test_leaving_with_code_0_is_a_success(self) -> None:
        Targets().command(("leave", "0")).function()
        assert jobs.calls == [("leave", 0)]

    def test_p60_leaving_with_another_code_is_a_failure(self) -> None:
        with pytest.raises(CommandError, match=r"^`leave 2` left with exit code 2$"):
            Targets().command(("leave", "2")).function()

    def test_wrong_arguments_are_a_failure(self) -> None:
        with pytest.raises(CommandError, match="invalid int value"):
            Targets().command(("leave", "x")).function()

    def test_the_nearest_command_is_proposed(self) -> None:
        with pytest.raises(UnresolvableError) as caught:
            Targets().command(("laeve",))
        assert caught.value.check == Check.COMMAND
        assert caught.value.reason == "`laeve` not found; `leave` exists"

    def test_nothing_is_proposed_for_what_resembles_nothing(self) -> None:
        with pytest.raises(UnresolvableError) as caught:
            Targets().command(("zzzzzzzz",))
        assert caught.value.reason == "`zzzzzzzz` not found"
