"""The shop's first day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.db.models import Sum
from django.test import TestCase
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from .. import seeding
from ..models import Product, Sale, StockMovement
from .base import TODAY, InAFolder


def seed() -> str:
    out = StringIO()
    call_command("seed", days=5, stdout=out)
    return out.getvalue()


class Seeding(InAFolder, TestCase):
    def test_the_same_day_has_the_same_past(self) -> None:
        pasts = []
        for _ in range(2):
            Sale.objects.all().delete()
            seeding.seed_shop(TODAY, days=5)
            pasts.append(list(Sale.objects.values_list("product__sku", "quantity", "sold_at")))
        self.assertEqual(pasts[0], pasts[1])

    def test_the_past_is_sixty_days_long_and_closed_on_sundays(self) -> None:
        seeding.seed_shop(TODAY)
        days = Sale.objects.order_by("sold_at").dates("sold_at", "day")
        first = TODAY - timedelta(60)
        self.assertEqual((days[0], days[len(days) - 1]), (first, TODAY - timedelta(2)))
        self.assertNotIn(6, {day.weekday() for day in days})
        self.assertLess(Sale.objects.first().sold_at, datetime(2026, 3, 29, tzinfo=UTC))  # type: ignore[union-attr]

    def test_the_past_explains_the_stock(self) -> None:
        seeding.seed_shop(TODAY, days=5)
        moved = StockMovement.objects.values_list("product__sku").annotate(Sum("quantity"))
        self.assertEqual(dict(moved.order_by()), dict(Product.objects.values_list("sku", "stock")))
        self.assertEqual(set(dict(moved.order_by()).values()), {seeding.IN_STOCK})

    def test_seeding_again_changes_nothing(self) -> None:
        self.assertIn("3 files put into the inbox", seed())
        sales, movements = Sale.objects.count(), StockMovement.objects.count()
        self.assertIn("0 sales made up, 0 files put into the inbox", seed())
        self.assertEqual((Sale.objects.count(), StockMovement.objects.count()), (sales, movements))

    def test_the_staff_user_is_named_and_may_log_in(self) -> None:
        self.assertIn("Staff user: admin, password admin.", seed())
        self.assertTrue(self.client.login(username="admin", password="admin"))
        for model in ("product", "sale", "delivery", "stockmovement"):
            page = self.client.get(reverse(f"admin:shop_{model}_changelist"))
            self.assertEqual(page.status_code, 200)

    def test_a_password_that_was_changed_is_not_told(self) -> None:
        seed()
        user = get_user_model().objects.get()
        user.set_password("another")
        user.save()
        self.assertIn("Staff user: admin, its password was changed.", seed())


class Pages(InAFolder, TestCase):
    def test_many_rows_take_no_more_queries_than_one(self) -> None:
        seed()
        self.client.login(username="admin", password="admin")
        for model in (Sale, StockMovement):
            with self.subTest(model.__name__):
                page = reverse(f"admin:shop_{model._meta.model_name}_changelist")
                self.client.get(page)  # the first page of all reads the theme
                many = self.queries_of(page)
                model.objects.exclude(pk=model.objects.latest("pk").pk).delete()
                self.assertEqual(model.objects.count(), 1)
                self.assertLessEqual(many, self.queries_of(page))

    def queries_of(self, page: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            self.client.get(page)
        return len(queries)
