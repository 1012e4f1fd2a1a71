"""Settings that can be read only where ``manage_with_shim.py`` was run."""

from __future__ import annotations

import shim_of_manage_py  # type: ignore[import-not-found]  # noqa: F401

from tests.processes.settings import *  # noqa: F403
