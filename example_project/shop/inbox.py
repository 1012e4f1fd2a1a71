"""Stock files of suppliers: read, booked once, and moved to ``processed``.

A file is a table with the columns of ``HEADER``. One line that cannot be understood
keeps the whole file in the inbox, and hinders no other file.
"""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from . import stock
from .files import folder, write_whole
from .models import Product

if TYPE_CHECKING:
    import _csv

logger = logging.getLogger(__name__)

HEADER = ["sku", "name", "quantity"]
MOST = 100_000

_LOOK_LIKE_DIGITS = str.maketrans("OoQIlSB", "0001158")


class InboxError(Exception):
    """Some files wait in the inbox until somebody fixes them."""


class MalformedFileError(stock.DeliveryError):
    """A file cannot be understood; says where and why."""


def import_files() -> list[str]:
    """Book every file of the inbox, and move it to ``processed``.

    Returns:
        the names of the files that were booked.

    Raises:
        InboxError: files are malformed; all others were booked.
    """
    booked, complaints = [], []
    for path in sorted(folder("inbox").glob("*.csv")):
        try:
            if import_file(path):
                booked.append(path.name)
        except stock.DeliveryError as error:
            complaints.append(f"{path.name}: {error} Fix {path} and save it.")
    if complaints:
        raise InboxError(" ".join(complaints))
    return booked


def import_file(path: Path) -> bool:
    """Book one file and move it away.

    Args:
        path: of a file in the inbox.

    Returns:
        whether it was booked now; otherwise an earlier run did, and was ended before
        it could move the file.

    Raises:
        DeliveryError: it cannot be booked.
    """
    content = path.read_bytes()
    goods = read(content)
    is_new = stock.receive(path.name, hashlib.sha256(content).hexdigest(), goods)
    os.replace(path, folder("processed") / path.name)
    if is_new:
        logger.info("%s: booked %d units of %d products", path.name, goods.total(), len(goods))
    return is_new


def read(content: bytes) -> Counter[str]:
    """Understand a stock file.

    Args:
        content: of the file.

    Returns:
        quantity by SKU.

    Raises:
        MalformedFileError: the first thing that is wrong.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MalformedFileError(f"line {line} is not UTF-8 text.") from error
    return _read_table(csv.reader(io.StringIO(text, newline=""), strict=True))


def write(file_name: str, goods: Iterable[tuple[Product, int]]) -> None:
    """Put a stock file into the inbox.

    Args:
        file_name: its number.
        goods: products and quantities.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEADER)
    table.writerows((product.sku, product.name, quantity) for product, quantity in goods)
    write_whole(folder("inbox") / file_name, text.getvalue())


def _read_table(rows: _csv.Reader) -> Counter[str]:
    known = set(Product.objects.values_list("sku", flat=True))
    goods: Counter[str] = Counter()
    try:
        if next(rows, []) != HEADER:
            raise MalformedFileError(f"there must be the words {','.join(HEADER)}.")
        for row in rows:
            if row:
                sku, quantity = _read_row(row, known)
                goods[sku] += quantity
    except (MalformedFileError, csv.Error) as error:
        raise MalformedFileError(f"on line {max(rows.line_num, 1)} {error}") from error
    return goods


def _read_row(row: Sequence[str], known: set[str]) -> tuple[str, int]:
    if len(row) != len(HEADER):
        expected = f"the {len(HEADER)} fields {','.join(HEADER)}"
        raise MalformedFileError(f"there must be {expected}, and not {len(row)}.")
    sku, _, quantity = (field.strip() for field in row)
    if sku not in known:
        near = get_close_matches(sku, known, 1)
        meant = f"; did you mean {near[0]}?" if near else "."
        raise MalformedFileError(f'the product "{sku}" is not known{meant}')
    return sku, _read_quantity(quantity)


def _read_quantity(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        digits = text.translate(_LOOK_LIKE_DIGITS)
        is_number = digits.isascii() and digits.isdigit()
        meant = f"; did you mean {digits}?" if is_number else "; write digits only."
        raise MalformedFileError(f'the quantity "{text}" is not a whole number{meant}')
    if len(text) > len(str(MOST)) or not 0 < int(text) <= MOST:
        raise MalformedFileError(f"the quantity {text[:20]} is not between 1 and {MOST}.")
    return int(text)
