"""Fill the shop: products, sales of the last weeks, a staff user, files in the inbox."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from ... import seeding


class Command(BaseCommand):
    help = "Fill the shop with products, sales, a staff user and stock files; safe to repeat."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days",
            type=int,
            default=seeding.DAYS,
            metavar="N",
            help=f"how many days the shop has been open (default: {seeding.DAYS})",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        sales = seeding.seed_shop(timezone.localdate(), options["days"])
        files = seeding.deliver()
        known = seeding.seed_staff()
        password = f"password {seeding.STAFF_PASSWORD}" if known else "its password was changed"
        self.stdout.write(
            f"{sales} sales made up, {len(files)} files put into the inbox.\n"
            f"Staff user: {seeding.STAFF_NAME}, {password}."
        )
