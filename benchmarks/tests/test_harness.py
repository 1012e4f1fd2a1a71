"""What the benchmarks make of samples: turns, medians, tables, the page."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from benchmarks import __main__ as command
from benchmarks.cron import oracle
from benchmarks.harness import (
    environments,
    parts,
    report,
    results,
    rounds,
    tables,
    targets,
    values,
)
from benchmarks.harness.contenders import CONTENDERS, Contender
from benchmarks.harness.parts import Figure, Part, Sample
from benchmarks.harness.rounds import Row, Turns
from benchmarks.harness.workers import Worker, WorkerError
from benchmarks.lateness.waiting import MINUTES, minutes
from tests.conftest import CHECKOUT

PART = Part(
    "cron", "Title", (Figure("fast", "ms"), Figure("more", "runs")), ("product", "cronsim", "limit")
)


class Told:
    """A contender's process that only says what it is asked."""

    def __init__(self, log: list[str], contender: Contender, size: int) -> None:
        self.log, self.contender, self.size = log, contender, size
        self.versions = {contender.distribution: "1.0"}

    def prepare(self) -> None:
        self.log.append(f"prepare {self.contender.id} {self.size}")

    def measure(self) -> list[Sample]:
        if self.contender.id == "cronsim":
            raise WorkerError("died: Error")
        self.log.append(f"measure {self.contender.id}")
        return [Sample("fast", len(self.log), 1, 2)]

    def close(self) -> None:
        self.log.append(f"close {self.contender.id}")


def turns(rounds: int, log: list[str], seconds: float = float("inf"), part: Part = PART) -> Turns:
    return Turns(
        part, [CONTENDERS[each] for each in part.contenders], (7,), rounds, seconds, log.append
    )


def test_everybody_is_measured_in_turns_in_another_order_each_round() -> None:
    log: list[str] = []
    told: list[str] = []
    rows = turns(2, told).take(lambda who, size: Told(log, who, size))
    assert [each for each in log if each.startswith("measure")] == [
        *("measure product", "measure limit", "measure limit", "measure product"),
    ]
    assert log[-3:] == ["close limit", "close cronsim", "close product"]
    assert [(row.contender, len(row.samples), row.trouble) for row in rows] == [
        ("product", 2, ""),
        ("cronsim", 0, "died: Error"),
        ("limit", 2, ""),
    ]


def test_a_fresh_part_begins_every_round_with_new_processes() -> None:
    log: list[str] = []
    part = Part("cron", "", (), ("product",), is_fresh=True)
    turns(2, [], part=part).take(lambda who, size: Told(log, who, size))
    assert log == ["prepare product 7", "measure product", "close product"] * 2


def test_no_round_begins_once_the_time_is_up_but_the_first() -> None:
    log: list[str] = []
    turns(5, [], -1).take(lambda who, size: Told(log, who, size))
    assert log.count("measure product") == 1


def test_who_takes_much_of_the_time_is_measured_once() -> None:
    row = Row("celery", 7, seconds=9.0)
    assert row.is_open(9.0)
    assert not row.is_open(8.9)
    assert not Row("celery", 7, trouble="died").is_open(9.0)


@pytest.mark.parametrize(
    ("seconds", "again"),
    [
        # An eighth of 80 seconds is nobody's fault.
        ({"product": 1.0, "cronsim": 10.0, "limit": 1.0}, ["product", "cronsim", "limit"]),
        ({"product": 1.0, "cronsim": 11.0, "limit": 1.0}, ["product", "limit"]),
        # All wait for a minute, some for two.
        ({"product": 120.0, "cronsim": 60.0, "limit": 60.0}, ["product", "cronsim", "limit"]),
        ({"product": 60.0, "cronsim": 190.0, "limit": 60.0}, ["product", "limit"]),
    ],
)
def test_who_takes_no_longer_than_the_others_is_measured_again(
    seconds: dict[str, float], again: list[str]
) -> None:
    rows = [Row(name, 7, seconds=took) for name, took in seconds.items()]
    longest = rounds._longest(rows, 80.0)
    assert [row.contender for row in rows if row.is_open(longest)] == again


def test_what_fails_in_one_part_keeps_no_other_from_being_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[tuple[str, float]] = []

    def measure(one: Part, asked: Any, server: Any, seconds: float) -> None:
        measured.append((one.name, seconds))
        if one.name == "tick":
            raise ValueError("no")

    monkeypatch.setattr(command, "Server", NoServer)
    monkeypatch.setattr(command, "_measure", measure)
    with pytest.raises(SystemExit, match="a part was not measured"):
        command.main(["all", "--budget", "10"])
    assert [name for name, _ in measured] == list(parts.NAMES)
    shares = sum(parts.part(name).share for name in parts.NAMES)
    assert measured[0][1] == pytest.approx(600 * parts.part("cron").share / shares, rel=0.01)
    assert "ValueError: no" in capsys.readouterr().err


def test_lateness_is_looked_at_for_as_many_minutes_as_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(MINUTES, "")
    monkeypatch.delenv(MINUTES)
    seen: list[int] = []
    monkeypatch.setattr(command, "Server", NoServer)
    monkeypatch.setattr(command, "_measure", lambda *_: seen.append(minutes(2)))
    command.main(["lateness"])
    command.main(["lateness", "--minutes", "10"])
    assert seen == [2, 10]


def test_a_cap_leaves_out_who_would_take_too_long() -> None:
    part = Part("cron", "", (), ("product",), caps=(("product", 10),))
    assert part.takes("product", 10)
    assert not part.takes("product", 11)


def test_a_summary_is_the_median_with_its_spread_and_all_that_was_counted() -> None:
    samples = [Sample("fast", value, 9, 10, statements=3) for value in (4.0, 1.0, 2.0)]
    found = results.summary([*samples, Sample("more", 99)], "fast")
    assert found == results.Summary(2.0, 1.0, 4.0, 3, 27, 30, 3)
    assert found.spread == 1.5
    assert results.summary(samples, "more") is None
    assert tables.cell(found) == "2 (1–4) 3q 27/30"
    assert tables.cell(found, "<br>") == "2 (1–4)<br>3q 27/30"


@pytest.mark.parametrize(
    ("value", "text"),
    [(12345.6, "12,346"), (12.345, "12.3"), (0.0123, "0.0123"), (0, "0"), (0.00042, "0.0004")],
)
def test_a_number_has_as_many_digits_as_it_means(value: float, text: str) -> None:
    assert tables.number(value) == text


def test_results_are_kept_and_read_back(tmp_path: Path) -> None:
    rows = [
        Row("product", 7, {"django": "6.1"}, [Sample("fast", 1.5, 1, 2)]),
        Row("limit", 7, {}, [], "died: Error"),
    ]
    facts = results.machine()
    results.save("cron", rows, facts, 3, tmp_path)
    read = results.load("cron", tmp_path)
    assert read is not None
    assert read[0] == rows
    assert (read[1]["rounds"], read[1]["facts"]) == (3, facts)
    assert "host" not in json.dumps(facts).casefold()
    assert results.load("tick", tmp_path) is None


def test_a_table_shows_versions_and_who_failed() -> None:
    rows = [
        Row("product", 7, {"django-declarative-cron": "1.0"}, [Sample("fast", 1.5, 1, 2)]),
        Row("cronsim", 7, {}, [], "died: Error"),
    ]
    assert tables.markdown(PART, rows).splitlines() == [
        "|  | fast, ms |",
        "| --- | --- |",
        "| declarative-cron 1.0 | 1.5<br>1/2 |",
        "| cronsim | died: Error |",
    ]
    assert tables.text(PART, rows).splitlines()[2] == "declarative-cron 1.0  1.5 1/2"
    told = tables.text(replace(PART, remarks=("product: twice as long.",)), rows)
    assert told.splitlines()[-1] == "- product: twice as long."


def test_a_page_has_a_table_for_each_size_and_each_group_of_figures() -> None:
    figures = (Figure("fast", "ms", table="A"), Figure("more", "runs", table="B"))
    part = Part("cron", "", figures, ("product", "limit"))
    rows = [
        Row("product", 1000, {}, [Sample("fast", 1), Sample("more", 2)]),
        Row("limit", 1000, {}, [Sample("fast", 3)]),
        Row("product", 2000, {}, [Sample("fast", 4)]),
    ]
    assert tables.markdown(part, rows).split("\n\n") == [
        "**1,000 tasks: A**",
        "|  | fast, ms |\n| --- | --- |\n| declarative-cron | 1 |\n| bare limit | 3 |",
        "**1,000 tasks: B**",
        "|  | more, runs |\n| --- | --- |\n| declarative-cron | 2 |",
        "**2,000 tasks: A**",
        "|  | fast, ms |\n| --- | --- |\n| declarative-cron | 4 |",
    ]


def _rows(value: float, right: int = 3, limit: float = 2.0) -> dict[str, list[Row]]:
    ours = [Sample("restart, unchanged", value, right, 3, statements=2)]
    return {
        "startup": [
            Row("product", 10, {}, [Sample("restart, unchanged", 99.0, 3, 3)]),
            Row("product", 1000, {}, ours),
            Row("limit", 1000, {}, [Sample("restart, unchanged", limit)]),
        ]
    }


RESTART = values.Value("startup", "restart, unchanged", 1000)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (_rows(10.0), "| x | ≤ 15 ms | 10 ms | yes |"),
        (_rows(15.5), "| x | ≤ 15 ms | 15.5 ms | **no** |"),
        (_rows(10.0, right=2), "| x | ≤ 15 ms | 10 ms | **no** |"),
        ({}, "| x | ≤ 15 ms | – | – |"),
    ],
)
def test_a_target_is_reached_by_what_is_fast_and_right(found: Any, words: str) -> None:
    assert targets._line(targets.Target("x", RESTART, 15, "ms"), found) == words


def test_a_target_may_be_a_ratio_a_difference_and_the_least() -> None:
    limit, found = replace(RESTART, contender="limit"), _rows(10.0)
    ratio = targets.Target("x", RESTART, 5, "×", over=limit)
    assert (ratio.measured(found), ratio.is_reached(found)) == (5.0, True)
    assert ratio.is_reached(_rows(10.0, limit=1.9)) is False
    more = targets.Target("x", RESTART, 8, "ms", minus=limit)
    assert (more.measured(found), more.is_reached(found)) == (8.0, True)
    least = targets.Target("x", RESTART, 11, "ms", is_least=True)
    assert least.is_reached(found) is False
    sent = targets.Target("x", replace(RESTART, of="statements"), 3, "statements")
    assert targets._line(sent, found) == "| x | ≤ 3 statements | 2 statements | yes |"


def test_every_target_names_a_figure_that_there_is() -> None:
    named = [
        each for target in targets.TARGETS for each in (target.value, target.over, target.minus)
    ]
    for value in [each for each in named if each]:
        part = parts.part(value.part)
        assert value.figure in {figure.name for figure in part.figures}, value
        assert value.contender in part.contenders, value
        assert value.size is None or value.size in part.sizes, value


def test_a_section_of_the_page_is_put_in_place_of_the_one_before() -> None:
    text = "a\n<!-- results of cron -->\nold\n<!-- end of cron -->\nb"
    assert report.put(text, "cron", r"new \1") == text.replace("old", r"new \1")
    with pytest.raises(LookupError, match="results of tick"):
        report.put(text, "tick", "new")


def test_the_page_gets_every_result_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = CHECKOUT / "docs" / "speed.md"
    (tmp_path / "speed.md").write_text(page.read_text())
    monkeypatch.setattr(report, "_draw", lambda *_: tmp_path / "speed" / "tick.svg")
    facts = {**results.machine(), "postgresql": "18", "cores": 2, "load_before": 0.5}
    facts["load_after"] = 3.0
    samples = [Sample("idle", 1.5, statements=1)]
    results.save("tick", [Row("limit", 7, {}, samples)], facts, 3, tmp_path)
    report.write(tmp_path, tmp_path)
    written = (tmp_path / "speed.md").read_text()
    assert "| bare limit | 1.5<br>1q |" in written
    assert "PostgreSQL 18 with `synchronous_commit` off" in written
    assert "at most 3 rounds." in written
    assert "- Idle: the median of fifty passes" in written
    assert "| idle pass, 1,000 tasks | ≤ 2 ms | – | – |" in written
    assert report.BUSY in written
    assert "![One pass](speed/tick.svg)" in written


def test_who_measures_processor_time_need_not_mind_a_busy_machine() -> None:
    facts = {"cores": 2, "load_before": 9.0, "load_after": 9.0, "python": "3", "postgresql": "18"}
    told = {"made": "2026-01-01", "rounds": 1, "facts": facts}
    rows = [Row("limit", 7, {}, [Sample("parse", 1.5), Sample("idle", 1.5)])]
    assert report.BUSY not in report.section(parts.part("cron"), rows, told)
    assert report.BUSY in report.section(parts.part("tick"), rows, told)
    facts.update(load_before=1.0, load_after=1.9)
    assert report.BUSY not in report.section(parts.part("tick"), rows, told)


@pytest.mark.slow
def test_a_picture_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks.harness import plots

    rows = [Row("limit", size, {}, [Sample("idle", size / 7)]) for size in (10, 100)]
    for part, chosen in ((parts.part("tick"), rows), (parts.part("tick"), rows[:1])):
        path = plots.draw(part, chosen, tmp_path)
        assert path is not None
        first = path.read_bytes()
        assert b"bare limit" in first
        assert plots.draw(part, chosen, tmp_path) is not None
        assert path.read_bytes() == first


class NoServer:
    """Stands for a server of databases, for those who use none."""

    def __init__(self, *, is_durable: bool = False) -> None:
        self.dropped = 0

    def version(self) -> str:
        return "none"

    def facts(self) -> dict[str, str]:
        return {}

    def new_database(self) -> dict[str, str]:
        return {}

    def drop(self, environment: dict[str, str]) -> None:
        self.dropped += 1


def test_a_process_measures_when_it_is_asked_and_says_why_it_died() -> None:
    server: Any = NoServer()
    worker = Worker(parts.part("cron"), CONTENDERS["limit"], 3, server, 60)
    worker.prepare()
    assert worker.versions["python"] == platform.python_version()
    assert {sample.figure for sample in worker.measure()} >= {"parse", "next, UTC"}
    with pytest.raises(WorkerError, match="died: KeyError"):
        worker._ask("prepare", much=3)
    worker.close()
    assert server.dropped == 1
    with pytest.raises(ProcessLookupError):
        os.killpg(worker._process.pid, 0)


def test_a_process_that_does_not_answer_is_ended_with_what_it_began() -> None:
    server: Any = NoServer()
    worker = Worker(parts.part("cron"), CONTENDERS["limit"], 3, server, 0.0)
    with pytest.raises(WorkerError, match="took more than 0 s to versions"):
        worker.prepare()
    with pytest.raises(ProcessLookupError):
        os.killpg(worker._process.pid, 0)
    worker.close()
    assert server.dropped == 1


def test_the_command_prints_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "Server", NoServer)
    command.main(["cron", "--only", "limit", "--sizes", "3", "--rounds", "1"])
    told = capsys.readouterr()
    assert told.out.startswith("Cron expressions\n")
    assert "bare limit" in told.out
    assert told.err.startswith("cron 3 limit: ")


def test_the_oracle_knows_what_becomes_of_lost_and_repeated_minutes() -> None:
    zone = ZoneInfo("America/New_York")
    lost = oracle.walk("30 2 * * *", zone, datetime(2026, 3, 7, 12, tzinfo=UTC), 1)
    assert lost == [datetime(2026, 3, 9, 6, 30, tzinfo=UTC)]
    twice = oracle.walk("30 1 * * *", zone, datetime(2026, 10, 31, 12, tzinfo=UTC), 2)
    assert twice == [
        datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
        datetime(2026, 11, 2, 6, 30, tzinfo=UTC),
    ]
    back = oracle.walk(
        "0 0 13 * 5", ZoneInfo("UTC"), datetime(2026, 11, 14, tzinfo=UTC), 2, backward=True
    )
    assert back == [datetime(2026, 11, 13, tzinfo=UTC), datetime(2026, 11, 6, tzinfo=UTC)]


def test_an_environment_that_cannot_be_made_is_told_by_its_last_words_alone() -> None:
    says = "import sys; sys.exit('tried this\\ntried that\\nERROR: no version fits')"
    with pytest.raises(RuntimeError, match=r"\AERROR: no version fits\Z"):
        environments._run(sys.executable, "-c", says)
