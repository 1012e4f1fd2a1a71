"""Write the conformance page, and keep what the texts demand."""

from __future__ import annotations

from . import inventory
from .page import PAGE, page
from .requirements import load, load_ojs

if __name__ == "__main__":
    inventory.write()
    PAGE.write_text(page(*load(), load_ojs()), encoding="utf-8")
