"""What a run found, as it is kept: JSON, one file for each part."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from .parts import Sample
from .rounds import Row

FOLDER = Path(__file__).resolve().parents[1] / "results"


@dataclass(frozen=True)
class Summary:
    """One figure of one contender at one size, over all rounds.

    Args:
        median: of the samples.
        low: the least.
        high: the greatest.
        rounds: how many samples there are.
        right: how many things done were right, in all rounds; ``None`` where nothing is counted.
        of: how many were to be done.
        statements: median of those sent to the database.
    """

    median: float
    low: float
    high: float
    rounds: int
    right: int | None
    of: int | None
    statements: float | None

    @property
    def spread(self) -> float:
        """Give how far the samples lie apart, as a part of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


def summary(samples: list[Sample], figure: str) -> Summary | None:
    """Sum up one figure.

    Args:
        samples: of one contender at one size.
        figure: its name.
    """
    chosen = [each for each in samples if each.figure == figure]
    if not chosen:
        return None
    values = [each.value for each in chosen]
    counted = [each for each in chosen if each.of is not None]
    sent = [each.statements for each in chosen if each.statements is not None]
    return Summary(
        median(values),
        min(values),
        max(values),
        len(values),
        sum(each.right or 0 for each in counted) if counted else None,
        sum(each.of or 0 for each in counted) if counted else None,
        median(sent) if sent else None,
    )


def machine() -> dict[str, Any]:
    """Give what figures depend on, without the machine's name."""
    load = os.getloadavg()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "load_before": round(load[0], 2),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def save(
    part: str, rows: list[Row], facts: dict[str, Any], rounds: int, folder: Path = FOLDER
) -> Path:
    """Write a part's results in place of those before.

    Args:
        part: its name.
        rows: what was found.
        facts: of machine and server.
        rounds: how many were asked for.
        folder: where.
    """
    folder.mkdir(exist_ok=True)
    path = folder / f"{part}.json"
    made = datetime.now(UTC).date().isoformat()
    kept = [_kept(row) for row in rows]
    told = {"part": part, "made": made, "rounds": rounds, "facts": facts}
    lines = ",\n".join(json.dumps(each) for each in kept)
    path.write_text(f'{json.dumps(told, indent=1)[:-2]},\n "rows": [\n{lines}\n ]\n}}\n')
    return path


def _kept(row: Row) -> dict[str, Any]:
    found = {**asdict(row), "samples": [_short(each) for each in row.samples]}
    return {**found, "seconds": round(row.seconds, 1)}


def _short(sample: Sample) -> dict[str, Any]:
    kept = {name: value for name, value in asdict(sample).items() if value is not None}
    return {**kept, "value": float(f"{sample.value:.5g}")}


def load(part: str, folder: Path = FOLDER) -> tuple[list[Row], dict[str, Any]] | None:
    """Read a part's results; ``None`` where it was not measured.

    Args:
        part: its name.
        folder: where.
    """
    path = folder / f"{part}.json"
    if not path.exists():
        return None
    told = json.loads(path.read_text())
    rows = [
        Row(**{**row, "samples": [Sample(**each) for each in row["samples"]]})
        for row in told.pop("rows")
    ]
    return rows, told
