"""A thread of its own, with database connections of its own that are closed whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connections

from .timeouts import TIMEOUT

T = TypeVar("T")
Elsewhere = Callable[[Callable[[], T]], "Future[T]"]


@contextmanager
def elsewhere() -> Iterator[Elsewhere[Any]]:
    """Do things in another thread.

    A connection that is left open is a warning, and so the failure of some later test.
    """
    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit
        finally:
            pool.submit(connections.close_all).result(TIMEOUT)
