"""``python -m benchmarks [NAME …] [--small]``."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from . import processes
from .figures import Table

MODULES = ("due", "restart", "throughput", "runners", "takeover", "lateness", "admin")
LONG = ("million",)
RESULTS = Path(__file__).resolve().parents[1] / "docs" / "generated" / "speed.md"


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; a run of every module also writes the table of docs/speed.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=_help())
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *MODULES, *LONG])
    parser.add_argument("--small", action="store_true", help="the smallest sizes, to try it out")
    chosen = parser.parse_args(arguments)
    names = chosen.names or MODULES
    is_whole = set(MODULES) <= set(names) and not chosen.small
    table, began, load = Table(), time.monotonic(), os.getloadavg()[0]
    for name in names:
        module, since = importlib.import_module(f"benchmarks.{name}"), time.monotonic()
        rows, own = module.measure(small=chosen.small), Table()
        for each in (own, table):
            each.add(module.FIGURES, rows)
        print(f"{own.text()}\n{name}: {time.monotonic() - since:.0f} s\n", flush=True)
        if is_whole:
            RESULTS.write_text(f"{table.markdown()}\n\n{_circumstances(load)}\n")
    print(f"{time.monotonic() - began:.0f} s in all; missed: {', '.join(table.missed()) or 'none'}")
    return 0


def _help() -> str:
    return (
        f"Measure the product beside its peers. Names: {', '.join(MODULES)}, and"
        f" {', '.join(LONG)}, which takes minutes and is left out unless named."
        f" A run of all writes {RESULTS.relative_to(RESULTS.parents[2])}."
    )


def _circumstances(load: float) -> str:
    """Return the facts about the machine that figures depend on."""
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} in one run: {os.cpu_count()} cores,"
        f" Python {platform.python_version()}, Django {_django()}, {processes.facts()};"
        f" load average {load:.1f} before and {os.getloadavg()[0]:.1f} after."
    )


def _django() -> str:
    import django

    return django.get_version()


if __name__ == "__main__":
    sys.exit(main())
