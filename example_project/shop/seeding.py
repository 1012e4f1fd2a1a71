"""What a shop needs on its first day: products, a past, somebody who may log in."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from .files import folder
from .models import Delivery, Product, Sale, StockMovement

STAFF_NAME = STAFF_PASSWORD = "admin"
DAYS = 60
SEED = 2024
IN_STOCK = 150
SUNDAY = 6

# SKU, name, price, how often it is bought
PRODUCTS = [
    ("coffee-beans-1kg", "Coffee beans, 1 kg", "18.90", 9),
    ("espresso-cup", "Espresso cup", "7.50", 6),
    ("filter-papers", "Filter papers, 100", "3.20", 8),
    ("french-press", "French press", "34.00", 2),
    ("hand-grinder", "Hand grinder", "59.00", 1),
    ("milk-jug", "Milk jug", "14.50", 3),
    ("moka-pot", "Moka pot", "29.90", 2),
    ("mug-blue", "Mug, blue", "9.80", 5),
    ("mug-red", "Mug, red", "9.80", 6),
    ("tea-darjeeling", "Tea, Darjeeling, 250 g", "12.40", 4),
]


def seed_staff() -> bool:
    """Make a user who may see and do everything, unless there is one.

    Returns:
        whether the user's password is the one that stands here.
    """
    users = get_user_model()
    user = users.objects.filter(username=STAFF_NAME).first()
    if user is None:
        user = users.objects.create_superuser(STAFF_NAME, password=STAFF_PASSWORD)
    return bool(user.check_password(STAFF_PASSWORD))


@transaction.atomic
def seed_shop(today: date, days: int = DAYS) -> int:
    """Fill an empty shop with products and their sales until yesterday.

    The same day gives the same sales. A shop that has sold anything stays as it is.

    Args:
        today: the first day without sales.
        days: how many days the shop has been open.

    Returns:
        how many sales were made up.
    """
    for sku, name, price, _ in PRODUCTS:
        Product.objects.get_or_create(
            sku=sku, defaults={"name": name, "unit_price": Decimal(price)}
        )
    if Sale.objects.exists():
        return 0
    opening = today - timedelta(days)
    sales = list(_sales(opening, today))
    Sale.objects.bulk_create(sales)
    StockMovement.objects.bulk_create(_movements(sales, _instant(opening, 8)))
    Product.objects.update(stock=IN_STOCK)
    return len(sales)


def deliver() -> list[str]:
    """Put the files of ``deliveries/`` into the inbox, each of them once.

    Returns:
        the names of those that are new.
    """
    booked = set(Delivery.objects.values_list("file_name", flat=True))
    there = {path.name for path in folder("inbox").iterdir()}
    files = sorted((settings.BASE_DIR / "deliveries").glob("*.csv"))
    new = [path for path in files if path.name not in booked | there]
    for path in new:
        shutil.copyfile(path, folder("inbox") / path.name)
    return [path.name for path in new]


def _sales(first: date, end: date) -> Iterator[Sale]:
    products = list(Product.objects.filter(sku__in=[sku for sku, *_ in PRODUCTS]))
    weights = {sku: weight for sku, _, _, weight in PRODUCTS}
    chance = random.Random(SEED)
    for number in range((end - first).days):
        day = first + timedelta(number)
        orders = 0 if day.weekday() == SUNDAY else chance.randint(25, 45) + number // 4
        for product in chance.choices(products, [weights[p.sku] for p in products], k=orders):
            at = _instant(day, 9) + timedelta(seconds=chance.randrange(10 * 3600))
            quantity = chance.choice([1, 1, 1, 2, 2, 3])
            yield Sale(
                product=product, quantity=quantity, unit_price=product.unit_price, sold_at=at
            )


def _movements(sales: list[Sale], opened: datetime) -> Iterator[StockMovement]:
    """Give what explains the sales and leaves ``IN_STOCK`` of every product."""
    kinds = StockMovement.Kind
    for product in Product.objects.all():
        gone = [sale for sale in sales if sale.product_id == product.pk]
        total = IN_STOCK + sum(sale.quantity for sale in gone)
        yield StockMovement(product=product, kind=kinds.OPENING, quantity=total, at=opened)
        for sale in gone:
            yield StockMovement(
                product=product, kind=kinds.SALE, quantity=-sale.quantity, at=sale.sold_at
            )


def _instant(day: date, hour: int) -> datetime:
    return datetime.combine(day, time(hour), timezone.get_default_timezone())
