"""``python -m benchmarks PART``, ``python -m benchmarks all``, ``python -m benchmarks report``."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback

from .harness import results, tables
from .harness.contenders import CONTENDERS
from .harness.parts import NAMES, Part, part
from .harness.rounds import Turns
from .harness.server import Server
from .harness.workers import Worker
from .lateness.waiting import MINUTES


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each.replace("_", "")) for each in text.split(","))


def _asked(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", choices=[*NAMES, "all", "report"])
    parser.add_argument("--rounds", type=int, help="how often everything is measured")
    parser.add_argument("--sizes", type=_numbers, help="how much there is, such as 1000,10000")
    parser.add_argument("--only", help="ids of contenders, such as product,limit")
    parser.add_argument("--budget", type=float, default=0, help="minutes, for all parts together")
    parser.add_argument("--minutes", type=int, default=0, help="of lateness, in a row")
    parser.add_argument("--patience", type=float, help="seconds for one answer")
    parser.add_argument("--durable", action="store_true", help="wait for the disk at each commit")
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/PART.json")
    return parser.parse_args(arguments)


def _tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _measure(one: Part, asked: argparse.Namespace, server: Server, seconds: float) -> None:
    chosen = asked.only.split(",") if asked.only else one.contenders
    turns = Turns(
        one,
        [CONTENDERS[each] for each in one.contenders if each in chosen],
        asked.sizes if asked.sizes and one.sizes != (0,) else one.sizes,
        asked.rounds or one.rounds,
        seconds,
        _tell,
    )
    facts = {**results.machine(), "postgresql": server.version(), **server.facts()}
    patience = asked.patience or one.patience + 60 * asked.minutes
    rows = turns.take(lambda who, size: Worker(one, who, size, server, patience))
    facts["load_after"] = round(os.getloadavg()[0], 2)
    print(tables.text(one, rows), end="\n\n", flush=True)
    if asked.keep:
        results.save(one.name, rows, facts, turns.rounds)


def main(arguments: list[str] | None = None) -> None:
    """Measure what is asked for.

    Args:
        arguments: of the command line.
    """
    asked = _asked(arguments)
    if asked.what == "report":
        from .harness import report

        report.write()
        return
    names = NAMES if asked.what == "all" else (asked.what,)
    if asked.minutes:
        os.environ[MINUTES] = str(asked.minutes)
    server = Server(is_durable=asked.durable)
    end = time.monotonic() + (asked.budget * 60 or float("inf"))
    chosen = [part(name) for name in names]
    failed = False
    for position, one in enumerate(chosen):
        began = time.monotonic()
        # What a part has left over is the others'.
        share = one.share / sum(each.share for each in chosen[position:])
        try:
            _measure(one, asked, server, (end - began) * share)
        except Exception:  # The other parts are measured whatever becomes of this one.
            failed = True
            traceback.print_exc()
        _tell(f"{one.name}: {(time.monotonic() - began) / 60:.1f} minutes")
    if failed:
        raise SystemExit("a part was not measured: see above")


if __name__ == "__main__":
    main()
