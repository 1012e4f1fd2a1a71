"""The process of one contender in one part: it measures when it is told to.

``python -m benchmarks.harness.serving PART CONTENDER``; a line of JSON in, a line of JSON out.
Whatever else it prints goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import django_declarative_cron

from .contenders import CONTENDERS, Contender
from .parts import Case


def case(part: str, contender: str) -> Case:
    """Give what a contender does in a part; Django has to be set up.

    Args:
        part: its name.
        contender: its id.
    """
    package = importlib.import_module(f"benchmarks.{part}")
    name = f"{package.__name__}.{contender.removesuffix('_sqlite')}"
    module = importlib.import_module(name) if hasattr(package, "__path__") else package
    made: Case = module.Case()
    return made


def versions(contender: Contender) -> dict[str, str]:
    """Give the versions that stand beside the figures.

    Args:
        contender: whose.
    """
    found = {"python": sys.version.split()[0]}
    for name in (contender.distribution, *contender.beside):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = f"{django_declarative_cron.__version__} (checkout)"
    return found


def serve(part: str, contender: Contender) -> None:
    """Answer until standard input ends.

    Args:
        part: its name.
        contender: who is measured.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if contender.apps is not None:
        from .project import set_up

        set_up(contender, lean=part == "memory")
    measured = case(part, contender.id)
    for line in sys.stdin:
        answers.write(json.dumps(_answer(measured, contender, json.loads(line))) + "\n")
        answers.flush()


def _answer(measured: Case, contender: Contender, asked: dict[str, Any]) -> Any:
    match asked["do"]:
        case "versions":
            return versions(contender)
        case "prepare":
            return measured.prepare(asked["size"])
        case "measure":
            return [asdict(sample) for sample in measured.measure()]
        case "close":
            return measured.close()
    raise ValueError(asked)


if __name__ == "__main__":
    serve(sys.argv[1], CONTENDERS[sys.argv[2]])
