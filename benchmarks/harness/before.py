"""What was slower once, and what was changed: a table in ``docs/speed.md``."""

from __future__ import annotations

from dataclasses import dataclass

from .tables import NOTHING, number
from .values import Kept, Value


@dataclass(frozen=True)
class Change:
    """One figure before, and why it is another now.

    Args:
        what: in words.
        before: the figure on a quiet machine of the same kind, with its unit and statements.
        value: where the present one is found.
        unit: of the present one.
        why: what was changed, as a clause.
    """

    what: str
    before: str
    value: Value
    unit: str
    why: str


CHANGES = (
    Change(
        "restart, unchanged, 1,000 tasks",
        "72 ms, 16q; then 41 ms, 9q; then 33.2 ms, then 17.3 ms, 3q",
        Value("startup", "restart, unchanged", 1000),
        "ms",
        "what only some deployments need is asked for in the statement that is sent anyway; then"
        " each field of an expression is read once, and what tasks say alike beside it; then"
        " PostgreSQL says by the seal of a set that its rows are as they were, and fetches none;"
        " then no expression is read that was read before, and nothing is put together that is"
        " not due",
    ),
    Change(
        "restart, unchanged, 10,000 tasks",
        "570–730 ms, 16q; then 214 ms, 9q; then 89.2 ms, then 63.9 ms, 3q",
        Value("startup", "restart, unchanged", 10_000),
        "ms",
        "the same",
    ),
    Change(
        "first registration, 1,000 tasks",
        "173 ms; then 138 ms, 19q; then 104 ms, 14q",
        Value("startup", "first registration", 1000),
        "ms",
        "many rows go with one statement, written without a model's detours; then tasks that"
        " differ in their names only are decided once, and a new deployment is asked nothing; then"
        " what they say alike is spelled once",
    ),
    Change(
        "first registration, 10,000 tasks",
        "3.2 s; then 1,376 ms; then 1,009 ms, 48q; then 624 ms, 25q",
        Value("startup", "first registration", 10_000),
        "ms",
        "the same",
    ),
    Change(
        "idle pass, 100,000 tasks, after 10,000 runs",
        "2.2 ms, 1q",
        Value("tick", "idle", 100_000),
        "ms",
        "an index finds the runs that are to end: they were looked for among all the instance ever"
        " made, so that a pass cost more with each run",
    ),
    Change(
        "1,000 due, started and recorded",
        "516 ms; then 303 ms, 11q",
        Value("tick", "1,000 due, in all", 1000),
        "ms",
        "only columns that changed are written, and what is the same in all rows is sent once;"
        " then rows are read a column at a time and without asking the fields of a model, and"
        " what a run was called on is understood once",
    ),
    Change(
        "10,000 due, started and recorded",
        "3.42 s, 92q",
        Value("tick", "10,000 due, in all", 10_000),
        "ms",
        "the same",
    ),
    Change(
        "recorded runs, PostgreSQL",
        "2,340 per second, the bare limit 4,597",
        Value("throughput", "recorded runs"),
        "per second",
        "starts and results go in batches; then the same",
    ),
    Change(
        "recorded runs, SQLite",
        "2,200 per second",
        Value("throughput", "recorded runs", contender="product_sqlite"),
        "per second",
        "the same",
    ),
    Change(
        "lateness, 1,000 tasks",
        "7.2 ms, the bare limit 0.93 ms",
        Value("lateness", "median", 1000),
        "ms",
        "what is due is decided and written shortly before its instant, and committed then",
    ),
    Change(
        "lateness, 100,000 tasks",
        "13.8 ms, the bare limit 1.2 ms",
        Value("lateness", "median", 100_000),
        "ms",
        "the same; and rows are not counted while a start is near",
    ),
    Change(
        "memory, 100,000 tasks",
        "163 MB",
        Value("memory", "memory", 100_000),
        "MB",
        "what tasks say alike beside their names is kept once",
    ),
)


def markdown(found: Kept) -> str:
    """Give the table.

    Args:
        found: all results.
    """
    lines = ["| what | before | now | what was changed |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *(_line(each, found) for each in CHANGES)])


def _line(change: Change, found: Kept) -> str:
    got = change.value.summary(found)
    now = NOTHING
    if got is not None:
        sent = f", {got.statements:.0f}q" if got.statements is not None else ""
        now = f"{number(got.median)} {change.unit}{sent}"
    return f"| {change.what} | {change.before} | {now} | {change.why} |"
