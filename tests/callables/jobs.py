"""Callbacks of every kind, to be named by declarations."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

from django.core.management import BaseCommand

calls: list[tuple[Any, ...]] = []


def send_mail(*args: Any) -> None:
    calls.append(args)


async def send_later() -> None:
    calls.append(("later",))


def count_stock(site: int) -> int:
    return site


def report(run: object, site: int = 0) -> None:
    calls.append((run, site))


def yields() -> Iterator[int]:
    yield 1


async def yields_later() -> AsyncIterator[int]:
    yield 1


class YieldsWhenCalled:
    def __call__(self) -> Iterator[int]:
        yield 1


yields_when_called = YieldsWhenCalled()


class Shop:
    def restock(self) -> None:
        calls.append(("restock",))

    @classmethod
    def close(cls) -> None:
        calls.append(("close",))

    @staticmethod
    def open() -> None:
        calls.append(("open",))

    def __call__(self) -> None:
        calls.append(("shop",))


class Command(BaseCommand):
    pass


shop = Shop()
bound = shop.restock
half = functools.partial(send_mail, "half")
number = 5


@functools.wraps(send_mail)
def _hidden() -> None:
    calls.append(("hidden",))


shadowed = _hidden


def __getattr__(name: str) -> object:
    if name == "computed":
        raise RuntimeError("nothing to compute with")
    raise AttributeError(name)
