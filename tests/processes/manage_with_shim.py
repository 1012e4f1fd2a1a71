"""A ``manage.py`` that puts a module in place before Django reads the settings."""

from __future__ import annotations

import os
import sys
from types import ModuleType

sys.modules["shim_of_manage_py"] = ModuleType("shim_of_manage_py")

if __name__ == "__main__":
    if os.environ.get("DDC_TEST_BROKEN_ENTRY") and "--fork-server" in sys.argv:
        raise LookupError("the entry point is broken")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
