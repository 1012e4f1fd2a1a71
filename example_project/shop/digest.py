"""The sales of one day as a page of text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count, DecimalField, F, Sum

from .files import folder, write_whole
from .models import Product, Sale

BEST_SELLERS = 5


def write_digest(day: date, zone: ZoneInfo) -> Path:
    """Write the digest of a day; writing it again replaces it.

    Args:
        day: from midnight to midnight, by the clock on the wall.
        zone: of that clock.

    Returns:
        the file.
    """
    path = folder("digests") / f"{day.isoformat()}.txt"
    write_whole(path, "\n".join(_lines(day, zone)) + "\n")
    return path


def _lines(day: date, zone: ZoneInfo) -> Iterator[str]:
    begins, ends = (datetime.combine(day + timedelta(days), time(), zone) for days in (0, 1))
    sales = Sale.objects.filter(sold_at__gte=begins, sold_at__lt=ends)
    sold = Sum(F("quantity") * F("unit_price"), output_field=DecimalField())
    sums = sales.aggregate(orders=Count("pk"), items=Sum("quantity"), turnover=sold)
    title = f"Sales of {day:%A, %d %B %Y}"
    yield from (title, "=" * len(title), "", *_totals(sums))
    yield from ("", "Best sellers")
    best = sales.values("product__name").annotate(units=Sum("quantity"), turnover=sold)
    for each in best.order_by("-units", "product__name")[:BEST_SELLERS]:
        yield f"  {each['product__name']:24} {each['units']:5} {each['turnover']:12.2f} EUR"
    yield from ("", "Running low")
    for product in Product.objects.filter(stock__lt=F("reorder_below")):
        yield f"  {product.name:24} {product.stock:5}"


def _totals(sums: dict[str, Any]) -> Iterator[str]:
    yield f"Orders   {sums['orders']:10}"
    yield f"Items    {sums['items'] or 0:10}"
    yield f"Turnover {sums['turnover'] or Decimal(0):10.2f} EUR"
