"""What a run costs by way of an engine, whether limits hold, and whether anything is left behind.

    python benchmarks/engine.py [--runs 1000] [--handed 10000] [--kill-every 20]

Needs what the tests need, and ``redis-server`` for the engine. PostgreSQL is the one of the
tests, or that of ``DATABASE_URL``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
os.environ["PYTHONPATH"] = str(HERE)
os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.engine_settings"
os.environ.setdefault("DDC_TEST_DATABASE", "postgres")
FOLDER = Path(tempfile.mkdtemp(prefix="ddc-bench-"))
os.environ["BENCHMARK_NOTES"] = str(FOLDER / "notes.txt")
os.environ["BENCHMARK_REDIS"] = f"unix://{FOLDER / 'redis.sock'}"

import django

django.setup()

from django.core.management import call_command
from django.db import connection

from django_declarative_cron import Run, Scheduler, conf
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.runners import Runner
from django_declarative_cron.runtime.runners.process import ProcessRunner
from django_declarative_cron.runtime.work import Work
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.store.results import Result

CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
HANDED = """| handed over | seconds | workers killed | lost | called twice at once \
| succeeded twice | called again | interrupted |
| --- | --- | --- | --- | --- | --- | --- | --- |"""
CALLBACKS = "benchmarks.runners.callbacks"
WORKER = ["rqworker", "default", "--job-class", "django_tasks_rq.Job"]
WORKER += ["--worker-class", "rq.worker.SimpleWorker"]


def entry(name: str, callback: str, **keys: object) -> dict[str, object]:
    return {"name": name, "cron": "0 0 29 2 *", "callback": f"{CALLBACKS}.{callback}", **keys}


def one(runner: Runner, item: dict[str, object]) -> tuple[float, Result]:
    """Call once; give the monotonic second at which the run was handed in, and the result."""
    (declaration,) = conf.declarations([item])
    now, over, ended = datetime.now(UTC), threading.Event(), []
    run = Run("t", now, now, 1, "due", "UTC", threading.Event())

    def done(result: Result) -> None:
        ended.append(result)
        over.set()

    work = Work(1, run, declaration.target, done, declaration=declaration)
    since = time.monotonic()
    runner.submit(work)
    over.wait(60)
    return since, ended[0]


def start_of_engine(runs: int) -> None:
    """Measure from the hand-over to the call in a worker that waits for it, by way of Redis."""
    names, costs = [f"s{number}" for number in range(runs)], []
    scheduler = Scheduler()
    scheduler.initialize([entry(name, "tells_when", runner="django_tasks") for name in names])
    submitted: dict[str, float] = {}
    submit = scheduler._engine.runners.submit

    def noted(work: Work) -> None:
        submitted[work.run.task_name] = time.monotonic()
        submit(work)

    setattr(scheduler._engine.runners, "submit", noted)  # noqa: B010 - mypy lets nobody assign a method
    process = worker()
    for name in names:
        operator_actions.request_run([name], Act("benchmark", datetime.now(UTC)))
        while not (found := TaskRun.objects.filter(task_name=name, outcome="succeeded").first()):
            time.sleep(0.05)
        assert found.result is not None
        costs.append((found.result - submitted[name]) * 1000)
    # The first one waited for the worker to start.
    print(f"start: median {statistics.median(costs[1:]):.1f} ms, slowest {max(costs[1:]):.0f} ms")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    scheduler.stop()
    TaskRun.objects.all().delete()


def limits() -> None:
    runner = ProcessRunner(10, system_clock)
    one(runner, entry("t", "tells_when", runner="process"))
    for callback in ("spins", "reads"):
        item = entry("t", callback, runner="process", options={"timeout": 5})
        since, result = one(runner, item)
        print(f"{callback}: {result.outcome} after {time.monotonic() - since:.2f} s")
    runner.close()


def leftovers(runs: int) -> None:
    runner = ProcessRunner(10, system_clock)
    item = entry("t", "tells_when", runner="process")
    runner.prepare(conf.declarations([item]))
    one(runner, item)
    server = runner.server.pid

    def state() -> tuple[int, int, int, int]:
        kids = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        theirs, mine = len(os.listdir(f"/proc/{server}/fd")), len(os.listdir("/proc/self/fd"))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            )
            return len(kids), theirs, mine, cursor.fetchone()[0]

    before, since = state(), time.monotonic()
    for _ in range(runs):
        one(runner, item)
    seconds = time.monotonic() - since
    time.sleep(0.2)
    print(
        f"{runs} process runs in {seconds:.1f} s; children, descriptors of server and scheduler,"
        f" connections: before {before}, after {state()}"
    )
    runner.close()


@contextmanager
def redis() -> Iterator[None]:
    command = ["redis-server", "--port", "0", "--save", "", "--dir", str(FOLDER)]
    command += ["--unixsocket", str(FOLDER / "redis.sock")]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    yield
    server.kill()
    server.wait()


def worker() -> subprocess.Popen[bytes]:
    with open(FOLDER / "workers.log", "ab") as log:
        command = [sys.executable, "-m", "django", *WORKER]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, cwd=HERE)


def handed(runs: int, kill_every: float) -> None:
    names = [f"t{number:05}" for number in range(runs)]
    scheduler = Scheduler()
    keys = {"runner": "django_tasks", "retry_delay": timedelta(seconds=1)}
    scheduler.initialize([entry(name, "notes", **keys) for name in names])
    workers, killed, kills = [worker(), worker()], 0, []
    since = last = time.monotonic()
    for index in range(0, runs, 500):
        operator_actions.request_run(
            names[index : index + 500], Act("benchmark", datetime.now(UTC))
        )
    while TaskRun.objects.filter(outcome="succeeded").count() < runs:
        time.sleep(0.5)
        if time.monotonic() - last > kill_every:
            last = time.monotonic()
            victim = workers.pop(0)
            os.killpg(victim.pid, signal.SIGKILL)
            victim.wait()
            kills.append((victim.pid, time.monotonic()))
            killed += 1
            workers.append(worker())
        if time.monotonic() - since > 3600:
            break
    seconds = time.monotonic() - since
    for each in workers:
        os.killpg(each.pid, signal.SIGKILL)
        each.wait()
    print(HANDED)
    judge(names, seconds, killed, dict(kills))
    scheduler.stop()


def judge(names: list[str], seconds: float, killed: int, kills: dict[int, float]) -> None:
    rows = Counter(TaskRun.objects.filter(outcome="succeeded").values_list("task_name", flat=True))
    spans, finished = noted(kills)
    print(
        f"| {len(names)} | {seconds:.0f} | {killed} "
        f"| {len(set(names) - rows.keys() | rows.keys() - finished)} "
        f"| {sum(overlaps(each) for each in spans.values())} "
        f"| {sum(count - 1 for count in rows.values())} "
        f"| {sum(len(each) - 1 for each in spans.values())} "
        f"| {TaskRun.objects.filter(outcome='interrupted').count()} |"
    )


def noted(kills: dict[int, float]) -> tuple[dict[str, list[tuple[float, float]]], set[str]]:
    """Give from when to when each task was being called, and which were called to the end."""
    spans: dict[str, list[tuple[float, float]]] = {}
    opened: dict[tuple[str, str], float] = {}
    for line in Path(os.environ["BENCHMARK_NOTES"]).read_text().splitlines():
        what, name, pid, when = line.split()
        if what == "began":
            opened[name, pid] = float(when)
        else:
            spans.setdefault(name, []).append((opened.pop((name, pid)), float(when)))
    finished = set(spans)
    for (name, pid), at in opened.items():
        # A call that was cut off lasted until its worker was seen dead, at the most.
        spans.setdefault(name, []).append((at, kills.get(int(pid), at)))
    return spans, finished


def overlaps(spans: list[tuple[float, float]]) -> int:
    """Count the calls that began while an earlier one of the task had not ended."""
    count, until = 0, 0.0
    for began, ended in sorted(spans):
        count += began < until
        until = max(until, ended)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--handed", type=int, default=10000)
    parser.add_argument("--kill-every", type=float, default=20.0)
    asked = parser.parse_args()
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {connection.settings_dict['NAME']}")
        cursor.execute(f"CREATE DATABASE {connection.settings_dict['NAME']}")
    call_command("migrate", verbosity=0)
    if asked.runs:
        with redis():
            start_of_engine(max(asked.runs // 25, 2))
        limits()
        leftovers(asked.runs)
    if asked.handed:
        with redis():
            handed(asked.handed, asked.kill_every)
    shutil.rmtree(FOLDER)


if __name__ == "__main__":
    main()
