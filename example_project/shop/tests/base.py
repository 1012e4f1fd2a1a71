"""A shop for one test: its folder is a temporary one, and its tasks get a run by hand."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

from django.test import SimpleTestCase, override_settings

from django_declarative_cron import Run

from .. import seeding
from ..models import Product

TODAY = date(2026, 3, 30)  # a Monday, the day after the clocks of Berlin went forward
NOW = datetime(2026, 3, 30, 4, 30, tzinfo=UTC)  # 06:30 in Berlin


class InAFolder(SimpleTestCase):
    """Give the shop a folder of its own, removed afterwards."""

    def setUp(self) -> None:
        self.var = Path(self.enterContext(tempfile.TemporaryDirectory()))
        quick = ["django.contrib.auth.hashers.MD5PasswordHasher"]
        self.enterContext(override_settings(SHOP_VAR=self.var, PASSWORD_HASHERS=quick))

    def put(self, name: str, *lines: str) -> Path:
        """Put a file into the inbox.

        Args:
            name: of the file.
            lines: its content.
        """
        path = self.var / "inbox" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def files(self, folder: str) -> list[str]:
        """Give the names of the files in a folder.

        Args:
            folder: of the shop.
        """
        return sorted(path.name for path in (self.var / folder).glob("*"))


def stock_of(sku: str) -> int:
    """Give the stock of a product."""
    return Product.objects.get(sku=sku).stock


def make_products() -> None:
    """Fill the shelves of a shop that has not sold anything."""
    seeding.seed_shop(TODAY, days=0)


def a_run(at: datetime = NOW) -> Run:
    """Give what a task is told that runs in time.

    Args:
        at: the occurrence it runs for.
    """
    return Run("a-task", at, at, 1, "due", "Europe/Berlin", threading.Event())


@contextmanager
def stopped_after(seconds: float, run: Run) -> Iterator[None]:
    """Stop the scheduler while the block runs.

    Args:
        seconds: after which it stops.
        run: whose scheduler it is.
    """
    timer = threading.Timer(seconds, run.stopping.set)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
