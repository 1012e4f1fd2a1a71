"""The callbacks of the scheduled tasks, as named in ``settings.SCHEDULED_TASKS``.

A function with the parameter ``run`` receives its occurrence, and learns when to stop.
"""

from __future__ import annotations

import json
import logging
import random
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from django.db.models import F
from django.utils import timezone

from . import inbox, stock
from .backup import back_up
from .digest import write_digest
from .files import folder, write_whole
from .models import Delivery, Product, Sale

if TYPE_CHECKING:
    from django_declarative_cron import Run

logger = logging.getLogger(__name__)

CUSTOMERS_STAY = 45.0
BETWEEN_CUSTOMERS = (1.0, 4.0)
HALF_LIFE = timedelta(days=7)


def import_stock() -> None:
    """Book the stock files of the inbox; fail while one of them is malformed."""
    inbox.import_files()


def write_heartbeat() -> None:
    """Leave a sign of life for a monitor that knows nothing of this scheduler."""
    alive = {"at": timezone.now().isoformat(timespec="seconds"), "sales": Sale.objects.count()}
    write_whole(folder() / "heartbeat.json", json.dumps(alive) + "\n")


def write_sales_digest(run: Run) -> None:
    """Write the digest of the day before; late or repeated, it is about the same day."""
    zone = ZoneInfo(run.timezone)
    today = run.scheduled_for.astimezone(zone).date()
    path = write_digest(today - timedelta(days=1), zone)
    logger.info("Wrote %s", path)


def back_up_database(run: Run) -> None:
    """Copy the database to ``var/backups``, and keep the newest copies."""
    logger.info("Wrote %s", back_up(run.scheduled_for))


def order_supplies(run: Run) -> None:
    """Have the supplier deliver what runs low; repeated, it is the same delivery."""
    number = f"reorder-{run.scheduled_for:%Y-%m-%dT%H%M}.csv"
    low = [
        (product, 5 * product.reorder_below)
        for product in Product.objects.filter(stock__lt=F("reorder_below"))
    ]
    if low and not Delivery.objects.filter(file_name=number).exists():
        inbox.write(number, low)
        logger.info("%s: the supplier sends %d products", number, len(low))


async def recompute_popularity(days: int) -> None:
    """Let what was sold long ago count less than what was sold today.

    Args:
        days: how far back sales count at all.
    """
    now = timezone.now()
    products = {product.pk: product async for product in Product.objects.all()}
    for product in products.values():
        product.popularity = 0
    async for sale in Sale.objects.filter(sold_at__gte=now - timedelta(days)).aiterator():
        weight = 0.5 ** ((now - sale.sold_at) / HALF_LIFE)
        products[sale.product_id].popularity += sale.quantity * weight
    await Product.objects.abulk_update(products.values(), ["popularity"])


def serve_customers(run: Run) -> None:
    """Let customers come and buy for a while, and close when the scheduler stops."""
    chance = random.Random()
    until = monotonic() + CUSTOMERS_STAY
    sold = 0
    while monotonic() < until and not run.stopping.wait(chance.uniform(*BETWEEN_CUSTOMERS)):
        sold += stock.place_order(chance) is not None
    logger.info("%d customers bought something", sold)
