"""Goods coming and going. The stock of a product changes here and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from .models import Delivery, Product, Sale, StockMovement

MOST_PER_ORDER = 3


class DeliveryError(Exception):
    """A delivery cannot be booked."""


@transaction.atomic
def sell(product: Product, quantity: int, at: datetime | None = None) -> Sale | None:
    """Sell a product, if there is enough of it.

    Args:
        product: what is sold.
        quantity: how many.
        at: when; now unless given.

    Returns:
        the sale, or ``None`` where the stock does not suffice.
    """
    enough = Product.objects.filter(pk=product.pk, stock__gte=quantity)
    if not enough.update(stock=F("stock") - quantity):
        return None
    at = at or timezone.now()
    StockMovement.objects.create(
        product=product, kind=StockMovement.Kind.SALE, quantity=-quantity, at=at
    )
    return Sale.objects.create(
        product=product, quantity=quantity, unit_price=product.unit_price, sold_at=at
    )


@transaction.atomic
def receive(file_name: str, digest: str, goods: Mapping[str, int]) -> bool:
    """Book a delivery once, however often it is asked for.

    Args:
        file_name: its number.
        digest: of its file.
        goods: quantity by SKU; every product is known.

    Returns:
        whether it was booked now; otherwise it had been before.

    Raises:
        DeliveryError: this number was booked with another content.
    """
    delivery, is_new = Delivery.objects.get_or_create(
        file_name=file_name, defaults={"digest": digest}
    )
    if not is_new:
        if delivery.digest != digest:
            raise DeliveryError("a file of this name with other content was booked before.")
        return False
    for product in Product.objects.filter(sku__in=goods):
        _add(product, goods[product.sku], delivery)
    return True


def _add(product: Product, quantity: int, delivery: Delivery) -> None:
    Product.objects.filter(pk=product.pk).update(stock=F("stock") + quantity)
    StockMovement.objects.create(
        product=product,
        kind=StockMovement.Kind.DELIVERY,
        quantity=quantity,
        at=delivery.received_at,
        delivery=delivery,
    )


def place_order(chance: random.Random) -> Sale | None:
    """Let one customer buy something; what is popular is bought more often.

    Args:
        chance: decides what and how many.

    Returns:
        the sale, or ``None`` where the product was sold out, or where there is none at all.
    """
    products = list(Product.objects.all())
    if not products:
        return None
    (product,) = chance.choices(products, [1 + product.popularity for product in products])
    return sell(product, chance.randint(1, MOST_PER_ORDER))
