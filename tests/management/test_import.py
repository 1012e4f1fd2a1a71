"""``cron import``: what other schedulers keep, read where they keep it."""

from __future__ import annotations

import io
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron import conf
from django_declarative_cron.importers import callables, calls, celery_beat, django_q
from django_declarative_cron.importers.result import UntranslatableError

from ..importers import stand_ins
from ..importers.stand_ins import beat_row, crontab_row
from . import callbacks
from .conftest import Cron

HERE = "tests.management.callbacks"
AT = datetime(2027, 1, 31, 5, 30, tzinfo=UTC)


def written(answer: Any) -> list[dict[str, Any]]:
    """Give the entries, which the settings accept."""
    left: dict[str, Any] = {}
    exec(answer.out, left)
    entries: list[dict[str, Any]] = left["SCHEDULED_TASKS"]
    assert [each for each in conf.problems(entries) if each.error] == []
    return entries


def test_the_tables_of_beat_go_before_the_settings(
    cron: Cron, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        beat_row(crontab=crontab_row(minute="5", hour="6", timezone="Asia/Tokyo"), args="[1]"),
        beat_row(name="b", interval=SimpleNamespace(every=2, period="hours"), queue="slow"),
        beat_row(name="c", solar=SimpleNamespace(event="sunset", latitude=1, longitude=2)),
        beat_row(name="d", clocked=SimpleNamespace(clocked_time=AT), one_off=True),
        beat_row(name="e", task="celery.backend_cleanup", crontab=crontab_row(hour="4")),
        beat_row(name="f", crontab=crontab_row(), enabled=False, start_time=AT, expires=AT),
    ]
    monkeypatch.setattr(celery_beat, "rows_of", lambda *given: rows)
    settings.CELERY_BEAT_SCHEDULE = {
        "a": {"task": "os.getcwd", "schedule": 10},
        "g": {"task": f"{HERE}.nothing", "schedule": stand_ins.crontab(0, "7", "mon")},
        "h": {"task": f"{HERE}.nothing", "schedule": stand_ins.solar("sunset", 1, 2)},
        "i": {"task": f"{HERE}.nowhere", "schedule": timedelta(minutes=1)},
    }
    settings.CELERY_TIMEZONE = "Europe/Amsterdam"
    answer = cron("import", "celery-beat")
    entries = written(answer)
    assert [(each["name"], each["cron"], each.get("timezone")) for each in entries] == [
        ("a", "5 6 * * *", "Asia/Tokyo"),
        ("b", "@every 2h", None),
        ("f", "* * * * *", "UTC"),
        ("g", "0 7 * * MON", "Europe/Amsterdam"),
    ]
    assert (answer.code, entries[0]["args"], entries[2]["enabled"]) == (0, [1], False)
    assert "4 tasks written, 4 without an entry." in answer.err
    for text in (
        "c: sunset at 1, 2",
        "d: it runs once",
        "h: sunset at 1",
        "i: Invalid registration",
    ):
        assert text in answer.err


def test_beats_schedule_without_a_zone_follows_that_of_the_project(
    cron: Cron, settings: Any
) -> None:
    settings.TIME_ZONE = "America/New_York"
    schedule = {"task": f"{HERE}.nothing", "schedule": stand_ins.crontab(0, "7", "mon")}
    settings.CELERY_BEAT_SCHEDULE = {"a": schedule}
    (entry,) = written(cron("import", "celery-beat"))
    assert entry["timezone"] == "America/New_York"


def test_a_row_of_beat_that_cannot_be_read_is_listed_and_the_others_are_read(
    cron: Cron, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        beat_row(name="deep", crontab=crontab_row(), args="[" * 200_000),
        beat_row(name="torn", crontab=crontab_row(), kwargs="{"),
        beat_row(name="whole", crontab=crontab_row()),
    ]
    monkeypatch.setattr(celery_beat, "rows_of", lambda *given: rows)
    answer = cron("import", "celery-beat")
    assert [each["name"] for each in written(answer)] == ["whole"]
    assert "deep: it cannot be read: RecursionError" in answer.err
    assert "torn: it cannot be read: JSONDecodeError" in answer.err


def test_a_module_that_raises_anything_ends_an_import_with_a_sentence(
    cron: Cron, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raises_at_import.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    answer = cron("import", "celery-beat", "raises_at_import.app")
    assert answer.code == 2
    assert "cannot be imported: ZeroDivisionError: division by zero" in answer.err
    with pytest.raises(UntranslatableError, match="ZeroDivisionError"):
        calls.bind("raises_at_import.task", [], {"a": 1})


@pytest.mark.parametrize("use_tz", [True, False])
def test_times_of_beats_tables_are_told_in_utc(
    cron: Cron, settings: Any, monkeypatch: pytest.MonkeyPatch, use_tz: bool
) -> None:
    """As rows have them: local where there are no aware times, else in the zone of the database."""
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "America/New_York"
    at = AT.astimezone(ZoneInfo("Asia/Tokyo" if use_tz else "America/New_York"))
    at = at if use_tz else at.replace(tzinfo=None)
    rows = [
        beat_row(name="a", clocked=SimpleNamespace(clocked_time=at)),
        beat_row(name="b", crontab=crontab_row(), start_time=at),
        beat_row(name="c", crontab=crontab_row(), expires=at),
    ]
    monkeypatch.setattr(celery_beat, "rows_of", lambda *given: rows)
    answer = cron("import", "celery-beat")
    assert "a: once, at 2027-01-31 05:30 UTC, is not a time" in answer.err
    told = re.findall(r"2027-01-\S+ \S+ [A-Z]+", answer.out)
    assert (len(told), set(told)) == (3, {"2027-01-31 05:30 UTC"})


def test_an_app_of_celery_is_read_by_its_path(cron: Cron, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(celery_beat, "rows_of", lambda *given: [])
    task = SimpleNamespace(__module__=HERE, __name__="nothing")
    schedule = {"a": {"task": "log", "schedule": stand_ins.crontab(0, 7), "kwargs": {"x": 1}}}
    app = SimpleNamespace(
        conf=SimpleNamespace(beat_schedule=schedule),
        loader=SimpleNamespace(import_default_modules=lambda: None),
        finalize=lambda: None,
        tasks={"log": task},
        timezone="Asia/Tokyo",
    )
    module = ModuleType("some_app")
    vars(module)["app"] = app
    monkeypatch.setitem(sys.modules, "some_app", module)
    (entry,) = written(cron("import", "celery-beat", "some_app.app"))
    assert (entry["cron"], entry["timezone"]) == ("0 7 * * *", "Asia/Tokyo")
    assert entry["args"] == [f"{HERE}.nothing", [], {"x": 1}]


def test_schedules_of_django_q_are_read_in_the_projects_zone(
    cron: Cron, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    nothing = dict.fromkeys(("minutes", "cron", "args", "kwargs", "hook"))
    row = SimpleNamespace(
        name=None,
        func=f"{HERE}.nothing",
        schedule_type="D",
        next_run=AT,
        **{"repeats": -1, **nothing},
    )
    monkeypatch.setattr(django_q, "rows_of", lambda *given: [row])
    (entry,) = written(cron("import", "django-q"))
    assert (entry["cron"], entry["timezone"]) == ("30 6 * * *", "Europe/Berlin")


def test_classes_of_django_cron_are_imported(
    cron: Cron, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = stand_ins.Schedule(run_every_mins=5)
    module = ModuleType("some_jobs")
    for name in ("One", "Two"):
        vars(module)[name] = type(name, (), {"schedule": schedule, "code": "same"})
    monkeypatch.setitem(sys.modules, "some_jobs", module)
    settings.CRON_CLASSES = ["some_jobs.One", "some_jobs.Two", "some_jobs.Three"]
    answer = cron("import", "django-cron")
    entries = written(answer)
    assert [(each["name"], each["args"]) for each in entries] == [
        ("same", ["some_jobs.One"]),
        ("same-2", ["some_jobs.Two"]),
    ]
    assert "Three: 'some_jobs.Three' cannot be imported" in answer.err


def test_a_list_of_django_crontab(cron: Cron, settings: Any) -> None:
    settings.CRONJOBS = [("0 4 * * *", f"{HERE}.nothing"), "nonsense"]
    settings.CRONTAB_LOCK_JOBS = True
    settings.CRONTAB_COMMAND_PREFIX = "nice"
    answer = cron("import", "django-crontab", "--timezone", "Asia/Tokyo")
    (entry,) = written(answer)
    assert (entry["timezone"], "overlap_policy" in entry) == ("Asia/Tokyo", False)
    assert "CRONTAB_COMMAND_PREFIX (nice) was part of every command" in answer.out
    assert "'nonsense': it is not an item of CRONJOBS" in answer.err


def test_a_scheduler_of_apscheduler_that_was_not_started(
    cron: Cron, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = stand_ins.BackgroundScheduler(job_defaults={"misfire_grace_time": 60})
    scheduler.add_job(callbacks.nothing, stand_ins.CronTrigger(hour=3), id="a")
    scheduler.add_job(callbacks.nothing, "interval", hours=2, id="b", next_run_time=None)
    scheduler.add_job(callbacks.nothing, stand_ins.DateTrigger(AT), id="c")
    scheduler.add_job(lambda: None, "interval", hours=2, id="d")
    module = ModuleType("some_jobs")
    vars(module)["scheduler"] = scheduler
    monkeypatch.setitem(sys.modules, "some_jobs", module)
    answer = cron("import", "apscheduler", "some_jobs.scheduler")
    first, second = written(answer)
    assert first["cron"] == "0 3 * * *"
    assert second["enabled"] is False
    assert (first["catch_up_window"], second["catch_up_window"]) == (60, 60)
    assert "c: one date, 2027-01-31 05:30" in answer.err
    assert "d: no dotted path leads to its function" in answer.err


class Torn:
    """A row of which nothing but its name can be read."""

    id = name = "torn"

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


def test_rows_that_raise_are_listed_and_the_others_are_read(
    cron: Cron, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    scheduler = stand_ins.BackgroundScheduler()
    scheduler.add_job(callbacks.nothing, stand_ins.CronTrigger(hour=3), id="a")
    jobs = [Torn(), *scheduler.get_jobs()]
    module = ModuleType("some_jobs")
    vars(module)["scheduler"] = SimpleNamespace(get_jobs=lambda: jobs)
    vars(module)["Torn"] = Torn()
    hourly = stand_ins.Schedule(run_every_mins=60)
    vars(module)["Hourly"] = SimpleNamespace(schedule=hourly, code="hourly")
    monkeypatch.setitem(sys.modules, "some_jobs", module)
    settings.CRON_CLASSES = ["some_jobs.Torn", "some_jobs.Hourly"]
    for words, name in (
        (("apscheduler", "some_jobs.scheduler"), "a"),
        (("django-cron",), "hourly"),
    ):
        answer = cron("import", *words)
        assert [each["name"] for each in written(answer)] == [name]
        assert "it cannot be read: RuntimeError: no " in answer.err
        assert "times of tasks that name no zone are read in" in " ".join(answer.out.split())


def test_a_job_store_is_unpickled_only_when_asked_for(
    cron: Cron, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Store:
        def get_all_jobs(self) -> list[Any]:
            asked.append("jobs")
            return []

    module = ModuleType("some_jobs")
    vars(module)["Store"] = Store
    monkeypatch.setitem(sys.modules, "some_jobs", module)
    answer = cron("import", "apscheduler", "some_jobs.Store")
    assert (answer.code, asked) == (2, [])
    assert "add --unpickle" in answer.err
    assert cron("import", "apscheduler", "some_jobs.Store", "--unpickle").code == 1
    assert asked == ["jobs"]


def test_a_crontab_from_a_file_and_from_a_pipe(
    cron: Cron, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "crontab"
    path.write_text("0 0 * * * ./manage.py clearsessions\n")
    (entry,) = written(cron("import", "crontab", str(path)))
    monkeypatch.setattr(sys, "stdin", io.StringIO("0 0 * * * root ./manage.py clearsessions\n"))
    (piped,) = written(cron("import", "crontab", "-", "--system"))
    assert entry == piped
    assert entry["command"] == ["clearsessions"]


def test_json_tells_the_same(cron: Cron, tmp_path: Path) -> None:
    path = tmp_path / "crontab"
    path.write_text("@reboot ./start\n0 0 * * * ./manage.py clearsessions\n")
    answer = cron("import", "crontab", str(path), "--format", "json")
    found = answer.data
    assert (found["from"], found["source"]) == ("crontab", str(path))
    assert [each["entry"] is None for each in found["tasks"]] == [True, False]
    assert found["tasks"][0]["differences"][0]["about"] == "refused"
    json.dumps(found)
    said = "1 task written, 1 without an entry. Every difference stands"
    # Each format says where to look in what it wrote.
    assert f"{said} beside its task." in answer.err
    assert f"{said} above its task." in cron("import", "crontab", str(path)).err


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("django-q",), 1, "nothing is declared there"),
        (("django-cron",), 1, "nothing is declared there"),
        (("crontab",), 2, "Name a file"),
        (("crontab", "no/such/file"), 2, "cannot be read"),
        (("apscheduler",), 2, "Name a scheduler by its dotted path"),
        (("apscheduler", "no.such.scheduler"), 2, "cannot be imported"),
        (("apscheduler", f"{HERE}.seen"), 2, "has no jobs"),
        (("apscheduler", f"{HERE}.remember"), 2, "gives no scheduler: TypeError"),
        (("celery-beat", "no.such.app"), 2, "cannot be imported"),
        (("celery-beat", f"{HERE}.seen"), 2, "is not a Celery app"),
        (("crontab", "x", "--timezone", "EST"), 2, "EST"),
    ],
)
def test_wrong_use_is_told(cron: Cron, words: tuple[str, ...], code: int, text: str) -> None:
    answer = cron("import", *words)
    assert answer.code == code
    assert text in answer.err


# --- what entries call ---


def test_arguments_by_name_find_their_places() -> None:
    assert calls.bind("textwrap.shorten", ["a b"], {"width": 5}) == ["a b", 5]
    assert calls.bind("textwrap.shorten", ["a b"], {"width": 5, "placeholder": "."}) is None
    assert calls.bind("textwrap.shorten", ["a b"], {"nothing": 5}) is None


def test_callables_do_what_they_say(capfd: pytest.CaptureFixture[str]) -> None:
    assert callables.call("textwrap.shorten", ["a b"], {"width": 5}) == "a b"
    assert callables.call("tests.management.test_import.Doing.twice", [2], {}) == 4
    assert callables.call_do("tests.management.test_import.Doing") == "done"
    callables.shell("cat; echo $((1 + 1)) >&2", "fed\n")
    assert capfd.readouterr() == ("fed\n", "2\n")
    with pytest.raises(callables.subprocess.CalledProcessError, match="status 3"):
        callables.shell("exit 3")


class Doing:
    """A class as django-cron has them."""

    def do(self) -> str:
        return "done"

    @staticmethod
    def twice(number: int) -> int:
        return number * 2
