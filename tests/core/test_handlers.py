"""Which types functions answer to."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from django_declarative_cron.core.handlers import Handlers, flaw_of_type
from django_declarative_cron.exceptions import InvalidRegistrationError


@pytest.fixture
def handlers() -> Handlers:
    return Handlers()


def test_a_registered_function_is_found_and_left_as_it_is(handlers: Handlers) -> None:
    @handlers.register("report.generate")
    def generate(kind: str) -> str:
        return kind * 2

    assert handlers.find("report.generate") is generate
    assert generate("a") == "aa"
    assert (list(handlers), len(handlers)) == (["report.generate"], 1)


def test_one_function_may_answer_to_several_types(handlers: Handlers) -> None:
    @handlers.register("cache.warm")
    @handlers.register("cache.fill")
    async def warm() -> int:
        return 1

    assert list(handlers) == ["cache.fill", "cache.warm"]
    assert asyncio.run(warm()) == 1


def test_what_was_not_registered_is_not_found(handlers: Handlers) -> None:
    handlers.register("report.generate")(len)
    for name in ("report", "os.system", "report.generate.x", "Report.generate", ""):
        assert handlers.find(name) is None
    assert handlers.nearest("report.genrate") == "report.generate"
    assert handlers.nearest("os.system") is None


def test_a_module_that_is_loaded_anew_may_register_again(handlers: Handlers) -> None:
    def load() -> Any:
        @handlers.register("report.generate")
        def generate() -> None: ...

        return generate

    first, second = load(), load()
    assert first is not second
    assert handlers.find("report.generate") is second


def test_another_function_cannot_take_a_type(handlers: Handlers) -> None:
    handlers.register("report.generate")(len)
    with pytest.raises(InvalidRegistrationError, match=r"is taken by builtins\.len"):
        handlers.register("report.generate")(max)
    assert handlers.find("report.generate") is len


def test_two_callables_without_a_name_are_told_apart(handlers: Handlers) -> None:
    handlers.register("report.generate")(partial(len, "a"))
    with pytest.raises(InvalidRegistrationError, match="is taken by"):
        handlers.register("report.generate")(partial(len, "b"))


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
def test_other_values_are_refused_with_the_form(name: Any, told: str, handlers: Handlers) -> None:
    assert told in (flaw_of_type(name) or "")
    with pytest.raises(InvalidRegistrationError, match=told) as caught:
        handlers.register(name)
    assert (caught.value.details["field"], len(handlers)) == ("type", 0)
