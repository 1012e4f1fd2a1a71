"""The shop's pages. What happened is read-only; products can be changed."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet, Sum
from django.http import HttpRequest

from .models import Delivery, Product, Sale, StockMovement


class ReadOnly:
    """Show rows that only the shop itself writes."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    list_display = ["sku", "name", "unit_price", "stock", "has_enough", "rounded_popularity"]
    list_display_links = ["sku", "name"]
    search_fields = ["sku", "name"]
    readonly_fields = ["stock", "popularity"]

    @admin.display(description="enough", boolean=True, ordering="stock")
    def has_enough(self, product: Product) -> bool:
        return product.stock >= product.reorder_below

    @admin.display(description="popularity", ordering="popularity")
    def rounded_popularity(self, product: Product) -> str:
        return f"{product.popularity:.1f}"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Sale)
class SaleAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["sold_at", "product", "quantity", "unit_price", "total"]
    list_filter = ["product"]
    list_select_related = ["product"]
    date_hierarchy = "sold_at"


class MovementInline(ReadOnly, admin.TabularInline):
    model = StockMovement
    fields = ["product", "quantity"]
    extra = 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[StockMovement]:
        return super().get_queryset(request).select_related("product")


@admin.register(Delivery)
class DeliveryAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["file_name", "received_at", "products", "units"]
    fields = ["file_name", "received_at"]
    inlines = [MovementInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        counted = {"products": Count("movements"), "units": Sum("movements__quantity")}
        return super().get_queryset(request).annotate(**counted)

    @admin.display(ordering="products")
    def products(self, delivery: Any) -> int:
        return int(delivery.products)

    @admin.display(ordering="units")
    def units(self, delivery: Any) -> int:
        return int(delivery.units or 0)


@admin.register(StockMovement)
class StockMovementAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["at", "product", "kind", "quantity", "delivery"]
    list_filter = ["kind", "product"]
    list_select_related = ["product", "delivery"]
    date_hierarchy = "at"
