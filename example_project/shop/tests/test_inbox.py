"""Stock files: booked once, or left in the inbox with a reason."""

from __future__ import annotations

from django.db.models import Sum
from django.test import TestCase

from .. import inbox, seeding, tasks
from ..models import Delivery, Product, StockMovement
from .base import InAFolder, make_products, stock_of

HEADER = "sku,name,quantity"
START = seeding.IN_STOCK

# what stands in line 3, what is said about it
REFUSED = [
    ("mug-red,Mug,4O", 'on line 3 the quantity "4O" is not a whole number; did you mean 40?'),
    ("mug-red,Mug,some", 'on line 3 the quantity "some" is not a whole number; write digits only.'),
    ("mug-red,Mug,", 'on line 3 the quantity "" is not a whole number; write digits only.'),
    ("mug-red,Mug,4.5", 'on line 3 the quantity "4.5" is not a whole number; write digits only.'),
    ("mug-red,Mug,-4", 'on line 3 the quantity "-4" is not a whole number; write digits only.'),
    ("mug-red,Mug,٤", 'on line 3 the quantity "٤" is not a whole number; write digits only.'),
    ("mug-red,Mug,0", "on line 3 the quantity 0 is not between 1 and 100000."),
    ("mug-red,Mug,100001", "on line 3 the quantity 100001 is not between 1 and 100000."),
    ("mug-red,Mug," + "9" * 5000, "on line 3 the quantity 99999999999999999999 is not between"),
    ("mug-rad,Mug,4", 'on line 3 the product "mug-rad" is not known; did you mean mug-red?'),
    ("zzz,Mug,4", 'on line 3 the product "zzz" is not known.'),
    ("mug-red,4", "on line 3 there must be the 3 fields sku,name,quantity, and not 2."),
    ('mug-red,"Mug" red,4', "on line 3 "),
]


class ImportStock(InAFolder, TestCase):
    def setUp(self) -> None:
        super().setUp()
        make_products()

    def test_a_good_file_is_booked_and_moved(self) -> None:
        self.put("one.csv", HEADER, "mug-red,Mug,4", "", "milk-jug,Jug,007", "mug-red,Mug,1")
        tasks.import_stock()
        self.assertEqual((stock_of("mug-red"), stock_of("milk-jug")), (START + 5, START + 7))
        self.assertEqual((self.files("inbox"), self.files("processed")), ([], ["one.csv"]))

    def test_a_malformed_line_keeps_the_whole_file_where_it_is(self) -> None:
        for line, said in REFUSED:
            with self.subTest(said):
                path = self.put("bad.csv", HEADER, "milk-jug,Jug,7", line)
                with self.assertRaises(inbox.InboxError) as caught:
                    tasks.import_stock()
                self.assertTrue(str(caught.exception).startswith(f"bad.csv: {said}"))
                self.assertTrue(str(caught.exception).endswith(f"Fix {path} and save it."))
        self.assertEqual(self.files("inbox"), ["bad.csv"])
        self.assertEqual((stock_of("mug-red"), stock_of("milk-jug")), (START, START))
        self.assertFalse(Delivery.objects.exists())

    def test_the_header_is_looked_at(self) -> None:
        for content in ([], ["name,sku,quantity"], ["mug-red,Mug,4"]):
            self.put("bad.csv", *content)
            with self.assertRaisesMessage(
                inbox.InboxError, f"on line 1 there must be the words {HEADER}."
            ):
                tasks.import_stock()

    def test_what_is_not_text_is_refused(self) -> None:
        path = self.put("bad.csv", HEADER)
        path.write_bytes(path.read_bytes() + b"mug-red,M\xfcg,4\n")
        with self.assertRaisesMessage(inbox.InboxError, "bad.csv: line 2 is not UTF-8 text."):
            tasks.import_stock()

    def test_one_malformed_file_hinders_no_other(self) -> None:
        self.put("1.csv", HEADER, "mug-red,Mug,4O")
        self.put("2.csv", HEADER, "mug-red,Mug,4")
        self.put("3.csv", HEADER, "mug-red,Mug")
        with self.assertRaisesRegex(inbox.InboxError, r"1\.csv: on line 2 .* 3\.csv: on line 2 "):
            tasks.import_stock()
        self.assertEqual(
            (self.files("inbox"), self.files("processed")), (["1.csv", "3.csv"], ["2.csv"])
        )
        self.assertEqual(stock_of("mug-red"), START + 4)

    def test_a_mended_file_is_booked(self) -> None:
        self.put("one.csv", HEADER, "mug-red,Mug,4O")
        with self.assertRaises(inbox.InboxError):
            tasks.import_stock()
        self.put("one.csv", HEADER, "mug-red,Mug,40")
        tasks.import_stock()
        self.assertEqual(stock_of("mug-red"), START + 40)

    def test_a_run_that_was_ended_before_moving_the_file_is_taken_up(self) -> None:
        for _ in range(2):
            self.put("one.csv", HEADER, "mug-red,Mug,4")
            tasks.import_stock()
        self.assertEqual(stock_of("mug-red"), START + 4)
        self.assertEqual((self.files("inbox"), self.files("processed")), ([], ["one.csv"]))

    def test_a_number_is_not_booked_with_two_contents(self) -> None:
        self.put("one.csv", HEADER, "mug-red,Mug,4")
        tasks.import_stock()
        self.put("one.csv", HEADER, "mug-red,Mug,5")
        with self.assertRaisesMessage(inbox.InboxError, "one.csv: a file of this name with other"):
            tasks.import_stock()
        self.assertEqual(stock_of("mug-red"), START + 4)

    def test_unfinished_files_are_left_alone(self) -> None:
        self.put("one.csv.part", HEADER, "mug-red,Mug,4")
        tasks.import_stock()
        self.assertEqual(self.files("inbox"), ["one.csv.part"])

    def test_of_the_files_delivered_with_the_shop_exactly_one_is_malformed(self) -> None:
        delivered = seeding.deliver()
        with self.assertRaisesRegex(inbox.InboxError, 'line 4 the quantity "4O"') as caught:
            tasks.import_stock()
        (left,) = self.files("inbox")
        self.assertEqual(str(caught.exception).count("Fix "), 1)
        self.assertEqual(sorted([left, *self.files("processed")]), delivered)

        path = self.var / "inbox" / left
        path.write_text(path.read_text().replace("4O", "40"))
        tasks.import_stock()
        self.assertEqual(self.files("inbox"), [])
        self.assertEqual(seeding.deliver(), [])

    def test_movements_add_up_to_the_stock(self) -> None:
        self.put("one.csv", HEADER, "mug-red,Mug,4")
        tasks.import_stock()
        moved = StockMovement.objects.values_list("product__sku").annotate(Sum("quantity"))
        self.assertEqual(dict(moved), dict(Product.objects.values_list("sku", "stock")))
