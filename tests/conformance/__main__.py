"""Write the conformance page."""

from __future__ import annotations

from .page import PAGE, page
from .requirements import load

if __name__ == "__main__":
    PAGE.write_text(page(*load()), encoding="utf-8")
