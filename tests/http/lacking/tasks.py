"""Need what is not installed."""

from __future__ import annotations

import a_module_that_nobody_has  # type: ignore[import-not-found] # noqa: F401
