"""Texts of exceptions of any size: bounded in length, memory and time."""

from __future__ import annotations

import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

from django_declarative_cron.core.declarations.values import exceeds
from django_declarative_cron.core.tracebacks import traceback_of
from django_declarative_cron.exceptions import LONGEST_TEXT, text_of, words_of

MEGABYTES = 1024 * 1024
HUGE = 50 * MEGABYTES
LENGTH = 64 * 1024


@contextmanager
def cheap() -> Iterator[None]:
    """Refuse more than 20 MB, and more CPU seconds than a bounded text takes."""
    began = time.process_time()
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * MEGABYTES
    # Tracing makes everything several times slower.
    assert time.process_time() - began < 5


class Silent(Exception):
    def __str__(self) -> str:
        return 3  # type: ignore[return-value]


class Raising(Exception):
    def __str__(self) -> NoReturn:
        raise SystemExit("no text")


class Derived(str):
    def __getitem__(self, key: Any) -> NoReturn:
        raise RuntimeError("not to be read")

    def __len__(self) -> int:
        return 1


class Odd(Exception):
    def __str__(self) -> str:
        return Derived("x" * (2 * LONGEST_TEXT))


def chained(length: int) -> BaseException:
    last: BaseException = ValueError("the first")
    for number in range(length):
        following = RuntimeError(f"number {number}")
        following.__cause__ = last
        last = following
    return last


def deep(levels: int) -> None:
    if levels:
        deep(levels - 1)
    raise ValueError("at the bottom")


def raised(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    "make",
    [
        lambda: ValueError("x" * HUGE),
        lambda: ValueError("x" * HUGE, "y" * HUGE),
        lambda: ValueError(b"x" * HUGE),
        lambda: ValueError(list(range(3_000_000))),
        lambda: ValueError(dict.fromkeys(range(1_000_000))),
        lambda: ValueError(set(range(1_000_000))),
        lambda: KeyError("x" * HUGE),
        lambda: OSError(5, "x" * HUGE),
        lambda: ExceptionGroup("x" * HUGE, [ValueError("y" * HUGE)] * 1000),
    ],
    ids=["text", "texts", "bytes", "list", "dict", "set", "key", "system", "group"],
)
def test_an_enormous_exception_costs_little_and_keeps_its_class(
    make: Callable[[], BaseException],
) -> None:
    error = make()
    with cheap():
        text, short, words = traceback_of(error, LENGTH), text_of(error), words_of(error)
    assert type(error).__name__ in text
    assert len(text) <= LENGTH
    assert 0 < len(short) <= LONGEST_TEXT + 10
    assert 0 < len(words) <= 510


def test_a_chain_shows_its_first_and_its_last_exceptions() -> None:
    error = chained(5_000)
    with cheap():
        text = traceback_of(error, LENGTH)
    assert text.startswith("ValueError: the first\n")
    assert text.endswith("RuntimeError: number 4999\n")
    assert "… 4981 more exceptions …" in text


def test_a_chain_that_contains_itself_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert traceback_of(first, LENGTH).endswith("ValueError: first\n")


def test_a_deep_stack_shows_its_first_and_its_last_frames() -> None:
    text = traceback_of(raised(lambda: deep(500)), LENGTH)
    assert "more frames …" in text
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("ValueError: at the bottom\n")


def test_groups_within_groups_are_cut_in_width_and_depth() -> None:
    group = ExceptionGroup("inner", [ValueError(str(number)) for number in range(1000)])
    for _ in range(100):
        group = ExceptionGroup("outer", [group] * 100)
    with cheap():
        text = traceback_of(group, LENGTH)
    assert text.startswith("ExceptionGroup: outer")
    assert "100 exceptions in all" in text
    assert len(text) <= LENGTH


def test_an_ordinary_exception_reads_as_python_writes_it() -> None:
    def fails() -> None:
        try:
            deep(2)
        except ValueError as error:
            error.add_note("while testing")
            raise KeyError("missing") from error

    error = raised(fails)
    assert traceback_of(error, LENGTH) == "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Silent(), "(its text cannot be read)"),
        (Raising(), "(its text cannot be read)"),
        (ValueError(10**5000), "(its text cannot be read)"),
        (Odd(), "x" * (LONGEST_TEXT // 2) + " … " + "x" * (LONGEST_TEXT // 2)),
        (ValueError("a", {"b": 1}), "('a', {'b': 1})"),
        (ValueError(["a"]), "['a']"),
        (ValueError(), ""),
        (KeyError("a"), "'a'"),
        (OSError(2, "No such file", "a.txt"), "[Errno 2] No such file: 'a.txt'"),
    ],
)
def test_a_text_is_read_whatever_its_class_does(error: BaseException, text: str) -> None:
    assert text_of(error) == text
    assert type(error).__name__ in traceback_of(error, LENGTH)


def test_a_class_with_an_enormous_name_is_cut() -> None:
    error = type("A" * MEGABYTES, (Exception,), {})("text")
    assert len(traceback_of(error, LENGTH)) < 2_000


def test_the_rest_of_a_secret_that_was_cut_is_not_shown() -> None:
    error = ValueError("password=" + "hunter2" * LONGEST_TEXT + " was refused")
    assert words_of(error) == "password=*** …  was refused"


def test_whether_data_is_too_long_is_known_without_reading_all_of_it() -> None:
    itself: list[Any] = []
    itself.append(itself)
    long = [None] * 3_000_000
    with cheap():
        assert exceeds("x" * 101, 100)
        assert exceeds(long, 100)
        assert exceeds({"x" * 101: 1}, 100)
        assert exceeds(itself, 100)
    assert not exceeds({"a": ["b", 1, None]}, 100)
