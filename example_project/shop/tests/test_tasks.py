"""The other tasks: digest, backup, supplies, popularity, customers, heartbeat."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from time import monotonic
from unittest import mock

from django.test import TestCase, TransactionTestCase
from django.utils import timezone

from .. import backup, stock, tasks
from ..models import Product, Sale, StockMovement
from .base import NOW, InAFolder, a_run, make_products, stock_of, stopped_after

DIGEST = """\
Sales of Sunday, 29 March 2026
==============================

Orders            2
Items             5
Turnover      49.00 EUR

Best sellers
  Mug, red                     3        29.40 EUR
  Mug, blue                    2        19.60 EUR

Running low
  Mug, blue                   10
"""


class Tasks(InAFolder, TestCase):
    def setUp(self) -> None:
        super().setUp()
        make_products()
        self.red, self.blue = (Product.objects.get(sku=sku) for sku in ("mug-red", "mug-blue"))

    def test_the_digest_is_about_the_day_before_by_the_clock_on_the_wall(self) -> None:
        # In Berlin the 29th began at 23:00 UTC, and ended at 22:00: it had 23 hours.
        stock.sell(self.red, 1, datetime(2026, 3, 28, 22, 59, 59, tzinfo=UTC))
        stock.sell(self.red, 3, datetime(2026, 3, 28, 23, 0, tzinfo=UTC))
        stock.sell(self.blue, 2, datetime(2026, 3, 29, 21, 59, 59, tzinfo=UTC))
        stock.sell(self.blue, 1, datetime(2026, 3, 29, 22, 0, tzinfo=UTC))
        Product.objects.filter(sku="mug-blue").update(stock=10)
        for _ in range(2):
            tasks.write_sales_digest(a_run())
        self.assertEqual(self.files("digests"), ["2026-03-29.txt"])
        self.assertEqual((self.var / "digests/2026-03-29.txt").read_text(), DIGEST)

    def test_a_day_without_sales_has_a_digest_too(self) -> None:
        tasks.write_sales_digest(a_run())
        text = (self.var / "digests/2026-03-29.txt").read_text()
        self.assertIn("Turnover       0.00 EUR", text)

    def test_the_heartbeat_says_when(self) -> None:
        before = timezone.now().replace(microsecond=0)
        tasks.write_heartbeat()
        told = json.loads((self.var / "heartbeat.json").read_text())
        self.assertLessEqual(before, datetime.fromisoformat(told["at"]))
        self.assertEqual(told["sales"], 0)

    def test_what_runs_low_is_ordered_once(self) -> None:
        Product.objects.filter(sku="coffee-beans-1kg").update(stock=99)
        tasks.order_supplies(a_run())
        self.assertEqual(self.files("inbox"), ["reorder-2026-03-30T0430.csv"])
        tasks.import_stock()
        self.assertEqual(stock_of("coffee-beans-1kg"), 99 + 500)
        Product.objects.filter(sku="mug-red").update(stock=0)
        tasks.order_supplies(a_run())
        self.assertEqual(self.files("inbox"), [])

    def test_nothing_is_ordered_while_there_is_enough(self) -> None:
        tasks.order_supplies(a_run())
        self.assertEqual(self.files("inbox"), [])

    async def test_popularity_halves_in_a_week(self) -> None:
        now = timezone.now()
        for days, quantity in ((0, 4), (7, 4), (14, 4), (61, 1000)):
            await Sale.objects.acreate(
                product=self.red, quantity=quantity, unit_price=1, sold_at=now - timedelta(days)
            )
        await Product.objects.filter(pk=self.blue.pk).aupdate(popularity=5)
        await tasks.recompute_popularity(60)
        red = await Product.objects.aget(pk=self.red.pk)
        blue = await Product.objects.aget(pk=self.blue.pk)
        self.assertAlmostEqual(red.popularity, 7, places=2)
        self.assertEqual(blue.popularity, 0)

    def test_customers_buy_until_it_is_time(self) -> None:
        with (
            mock.patch.object(tasks, "CUSTOMERS_STAY", 0.2),
            mock.patch.object(tasks, "BETWEEN_CUSTOMERS", (0.01, 0.02)),
        ):
            tasks.serve_customers(a_run())
        sold = sum(Sale.objects.values_list("quantity", flat=True))
        in_stock = sum(Product.objects.values_list("stock", flat=True))
        self.assertGreater(sold, 0)
        self.assertEqual(in_stock + sold, Product.objects.count() * 150)

    def test_customers_leave_when_the_scheduler_stops(self) -> None:
        run, began = a_run(), monotonic()
        with mock.patch.object(tasks, "BETWEEN_CUSTOMERS", (40, 40)), stopped_after(0.05, run):
            tasks.serve_customers(run)
        self.assertLess(monotonic() - began, 20)
        self.assertFalse(Sale.objects.exists())

    def test_nothing_is_sold_that_is_not_there(self) -> None:
        Product.objects.update(stock=0)
        self.assertIsNone(stock.place_order(random.Random(1)))
        self.assertFalse(StockMovement.objects.filter(kind="sale").exists())

    def test_a_shop_that_has_just_been_deployed_sells_nothing(self) -> None:
        StockMovement.objects.all().delete()
        Product.objects.all().delete()
        self.assertIsNone(stock.place_order(random.Random(1)))


class Backup(InAFolder, TransactionTestCase):
    """A copy is taken outside any transaction, as in the scheduler."""

    def test_a_copy_is_a_database_of_its_own(self) -> None:
        make_products()
        tasks.back_up_database(a_run())
        self.assertEqual(self.files("backups"), ["shop-2026-03-30T0430.sqlite3"])
        with closing(sqlite3.connect(self.var / "backups/shop-2026-03-30T0430.sqlite3")) as copy:
            (count,) = copy.execute("SELECT count(*) FROM shop_product").fetchone()
        self.assertEqual(count, Product.objects.count())

    def test_the_newest_are_kept(self) -> None:
        days = [NOW + timedelta(number) for number in range(backup.KEPT + 2)]
        for day in [*days, days[-1]]:
            backup.back_up(day)
        kept = [f"shop-{day:%Y-%m-%d}T0430.sqlite3" for day in days[2:]]
        self.assertEqual(self.files("backups"), kept)

    def test_a_copy_that_is_not_sound_replaces_none(self) -> None:
        good = backup.back_up(NOW)
        content = good.read_bytes()
        with (
            mock.patch.object(backup, "flaw_of", lambda copy: "row 1 missing from index"),
            self.assertRaisesMessage(backup.BackupError, "row 1 missing from index"),
        ):
            backup.back_up(NOW)
        self.assertEqual(good.read_bytes(), content)
