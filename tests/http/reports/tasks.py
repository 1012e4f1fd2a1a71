"""Functions that answer to types."""

from __future__ import annotations

from typing import Any

from django_declarative_cron import handler

calls: list[tuple[Any, ...]] = []


@handler("report.generate")
def generate(*args: Any) -> None:
    calls.append(args)


@handler("report.fail")
def fail(*args: Any) -> None:
    raise ValueError("no paper")


@handler("cache.warm")
async def warm(*args: Any) -> None:
    calls.append(args)
