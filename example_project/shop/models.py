"""What the shop keeps: products, what was sold, what was delivered, what is in stock."""

from __future__ import annotations

from decimal import Decimal

from django.db import models
from django.utils import timezone


class Product(models.Model):
    sku = models.SlugField("SKU", unique=True)
    name = models.CharField(max_length=100)
    unit_price = models.DecimalField("price in EUR", max_digits=8, decimal_places=2)
    stock = models.PositiveIntegerField(default=0)
    reorder_below = models.PositiveIntegerField(default=100)
    popularity = models.FloatField(
        default=0, help_text="Units sold; those of a week ago count half as much as today's."
    )

    class Meta:
        ordering = ["sku"]

    def __str__(self) -> str:
        return f"{self.name} ({self.sku})"


class Sale(models.Model):
    product = models.ForeignKey(Product, models.PROTECT, related_name="sales")
    quantity = models.PositiveIntegerField()
    unit_price = models.DecimalField("price in EUR", max_digits=8, decimal_places=2)
    sold_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        ordering = ["-sold_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.quantity} × {self.product.name}"

    @property
    def total(self) -> Decimal:
        return self.quantity * self.unit_price


class Delivery(models.Model):
    """One file of the inbox; its name is its number, and no number is booked twice."""

    file_name = models.CharField("file", max_length=255, unique=True)
    digest = models.CharField("SHA-256", max_length=64, editable=False)
    received_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-received_at", "-pk"]
        verbose_name_plural = "deliveries"

    def __str__(self) -> str:
        return self.file_name


class StockMovement(models.Model):
    """Why the stock of a product changed; all of a product's movements add up to it."""

    class Kind(models.TextChoices):
        OPENING = "opening", "opening stock"
        DELIVERY = "delivery", "delivery"
        SALE = "sale", "sale"

    product = models.ForeignKey(Product, models.PROTECT, related_name="movements")
    kind = models.CharField(max_length=10, choices=Kind)
    quantity = models.IntegerField(help_text="Below zero where goods left the shop.")
    at = models.DateTimeField(default=timezone.now)
    delivery = models.ForeignKey(
        Delivery, models.CASCADE, null=True, blank=True, related_name="movements"
    )

    class Meta:
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.quantity:+} {self.product.sku}"
