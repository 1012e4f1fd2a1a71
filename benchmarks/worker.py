"""The process that measures: ``python -m benchmarks.worker MODULE:FUNCTION ARGUMENTS ANSWER``."""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import django

from .measuring import count_statements


def main(function: str, arguments: str, answer: str) -> None:
    """Call a function of this package and write its rows."""
    count_statements()
    django.setup()
    module, _, name = function.partition(":")
    rows = getattr(importlib.import_module(module), name)(**json.loads(arguments))
    Path(answer).write_text(json.dumps([asdict(row) for row in rows]))
    # Threads and processes of a contender may never end.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
