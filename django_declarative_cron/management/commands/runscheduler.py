"""Run the declared tasks until SIGTERM, SIGINT or SIGHUP.

Exit codes: 0 clean shutdown; 1 the scheduler failed; 2 wrong use, such as an
unmigrated database or invalid registrations; 128 + N ended immediately by a
second signal N.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, SystemCheckError
from django.db import Error as DatabaseError

from ... import conf
from ...core.events import SchedulerInitializationCompleted
from ...exceptions import DeclarativeCronError, ScheduleTaskError, StopSchedulerError, safe
from ...monitoring.metrics import Exporter, MetricsUnavailableError
from ...runtime.clock import system_clock
from ...runtime.connections import leave_pool, limit_connecting
from ...runtime.forking import Sentinel
from ...runtime.probes import LOOPBACK, Listener, probe_pages, report
from ...runtime.runners import fork_server, fork_server_client
from ...runtime.scheduler import Scheduler
from ...runtime.sd_notify import Notifier
from ...runtime.shutdown import LastResort, Shutdown, is_hangup
from ...runtime.watchdog import fork_watchdog
from ...signals import signal_of
from ...store import database
from ...store.database import AWAY
from ..cli.deployment_scope import require_tables
from ..cli.runscheduler_output import RunLineFormatter, banner
from ..cli.subcommand import refuse_unstorable, seconds, whole, wrong_use
from ..cli.terminal import abandon

_CLOSED = (
    "A callback closed file descriptors of the scheduler. The process ends with exit code 1, "
    "because its writes could go into the wrong file. Runs in progress start again."
)
_PROBES = "Probes: /live and /ready"
_METRICS = "Metrics: /metrics"
_LOOK_AT_THE_SIGNAL = timedelta(seconds=0.2)
_FAREWELL = timedelta(seconds=2)
_LONGEST_START_AFTER_SIGNAL = timedelta(seconds=10)


class Command(BaseCommand):
    """The command ``runscheduler``: a scheduler for as long as the process lives."""

    # They run by hand, after the tables are known to be there, so that mistakes exit with 2.
    requires_system_checks: list[str] = []
    help = (
        "Run the tasks of settings.SCHEDULED_TASKS until SIGTERM, SIGINT or SIGHUP. "
        "Exit codes: 0 stopped as asked, 1 failed, 2 wrong use, 128+N ended by a second signal N."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        refuse_unstorable(parser)
        parser.add_argument(
            "--once",
            action="store_true",
            help="initialise, look once for due tasks, wait for what was started, stop",
        )
        parser.add_argument(
            "--workers",
            type=partial(whole, most=1_000_000),
            metavar="N",
            help="size of the thread pool",
        )
        parser.add_argument(
            "--grace",
            type=seconds,
            metavar="SECONDS",
            help="how long a stop waits for runs in flight",
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="take the lead although the tasks of a newer RELEASE are active",
        )
        parser.add_argument(fork_server_client.OPTION, metavar="ORDER", help=SUPPRESS)
        _add_ports(parser)

    def handle(self, *args: Any, **given: Any) -> None:
        """Run until a shutdown is requested; the exit code reports the result."""
        if given["fork_server"] is not None:
            fork_server.main(given["fork_server"])
            return
        self._sentinel = Sentinel()
        self._last_resort = LastResort()
        self._longest_start = _LONGEST_START_AFTER_SIGNAL
        shutdown = Shutdown(lambda: self._last_resort.arm(self._longest_start))
        shutdown.install()
        self._require_database()
        self._check_settings()
        _show_events(given["verbosity"])
        options = _options(given)
        # It may wait for locked rows; a shutdown request then waits for the grace period.
        self._longest_start = min(max(options.GRACE, _FAREWELL), _LONGEST_START_AFTER_SIGNAL)
        # A process that only calls the command has a life, and threads, of its own.
        is_alone = getattr(self, "_called_from_command_line", False)
        if is_alone:
            fork_server_client.is_command()
        watchdog = fork_watchdog(options, system_clock) if is_alone else None
        scheduler = Scheduler(
            options=lambda: options,
            background=not given["once"],
            watchdog=watchdog,
            force=given["force"],
        )
        self._run(scheduler, shutdown, options, given)
        if shutdown.received is not None and is_hangup(shutdown.received):
            # Python would exit with an error if it cannot flush output to a closed terminal.
            abandon(self.stdout)
            abandon(self.stderr)
        # Not after an error: an instance without a clean shutdown is counted as dead.
        if watchdog is not None:
            watchdog.dismiss()

    def _run(
        self, scheduler: Scheduler, shutdown: Shutdown, options: conf.Options, given: dict[str, Any]
    ) -> None:
        if given["once"]:
            self._initialize(scheduler, shutdown)
            self._once(scheduler, shutdown, options.GRACE)
            return
        port = self._probes(scheduler, given)
        self._metrics(scheduler, given)
        with _before_anything_runs(lambda: self._banner(scheduler, options, port)):
            self._initialize(scheduler, shutdown)
        notifier = Notifier()
        notifier.ready()
        self._serve(scheduler, shutdown, notifier)
        notifier.stopping()
        self._end(scheduler, options.GRACE)

    def _require_database(self) -> None:
        try:
            limit_connecting(database.alias())
            leave_pool(database.alias())
            require_tables(database.alias())
        except DatabaseError as error:
            raise CommandError(AWAY) from error

    def _check_settings(self) -> None:
        """Reject invalid settings; report all mistakes together."""
        try:
            self.check()
        except SystemCheckError as error:
            raise wrong_use(str(error)) from error

    def _initialize(self, scheduler: Scheduler, shutdown: Shutdown) -> None:
        try:
            scheduler.initialize(conf.registrations())
        except ScheduleTaskError as error:
            # An exit after a shutdown request counts as clean.
            code = 1 if shutdown.received is None else 0
            raise CommandError(error.message, returncode=code) from error
        except DeclarativeCronError as error:
            notes = getattr(error, "__notes__", [])
            raise wrong_use("\n".join([error.message, *notes])) from error

    def _probes(self, scheduler: Scheduler, given: dict[str, Any]) -> int | None:
        if given["health_port"] is None:
            return None
        probes = Listener(probe_pages(lambda: report(scheduler)))
        return self._listen(probes, given["health_host"], given["health_port"], _PROBES)

    def _metrics(self, scheduler: Scheduler, given: dict[str, Any]) -> None:
        if given["metrics_port"] is None:
            return
        try:
            exporter = Exporter(scheduler)
        except MetricsUnavailableError as error:
            raise wrong_use(str(error)) from error
        self._listen(exporter, given["metrics_host"], given["metrics_port"], _METRICS)

    def _listen(self, listener: Listener | Exporter, host: str, port: int, what: str) -> int:
        try:
            listener.start(host, port)
        except OSError as error:
            where = f"{host or '*'}:{port}"
            title = what.partition(":")[0].lower()
            raise CommandError(f"No {title} at {where}: {error}") from error
        self._say(f"{what} on port {listener.port}.")
        return listener.port

    def _banner(self, scheduler: Scheduler, options: conf.Options, port: int | None) -> None:
        said = banner(scheduler, options, database.alias(), port)
        self._say("\n".join(said))

    def _say(self, line: str) -> None:
        try:
            self.stdout.write(safe(line, keep="\n"))
            # Into a pipe it would wait for many more lines, and the logs of a container show none.
            self.stdout.flush()
        except OSError:
            # The terminal is closed, and the stop goes on without it.
            abandon(self.stdout)

    def _once(self, scheduler: Scheduler, shutdown: Shutdown, grace: timedelta) -> None:
        scheduler.tick_once()
        try:
            while not scheduler.stop(grace=_LOOK_AT_THE_SIGNAL):
                self._require_descriptors()
                if shutdown.received is not None:
                    self._end(scheduler, grace)
                    return
        except StopSchedulerError as error:
            raise CommandError(error.message) from error

    def _serve(self, scheduler: Scheduler, shutdown: Shutdown, notifier: Notifier) -> None:
        while not shutdown.wait(notifier.interval):
            self._require_descriptors()
            if not (scheduler.is_alive and shutdown.is_alive):
                self._fail("A thread that the scheduler needs has ended.", scheduler)
            notifier.look(report(scheduler))

    def _require_descriptors(self) -> None:
        """End the process where a callback has closed descriptors of the scheduler.

        The next opened file gets such a number, so data for the database or a log, also during
        the shutdown, may be written to another file.
        """
        if not self._sentinel.is_intact:
            self._sentinel.say(_CLOSED)
            os._exit(1)

    def _fail(self, message: str, scheduler: Scheduler) -> None:
        with suppress(OSError):
            self.stderr.write(self.style.ERROR(message))
        _leave_at_once(scheduler, 1)

    def _end(self, scheduler: Scheduler, grace: timedelta) -> None:
        self._say("Stopping: nothing new starts; waiting for runs in flight.")
        # A database that does not answer may hold everything up.
        self._last_resort.arm(grace + _FAREWELL)
        try:
            drained = scheduler.stop(grace=grace)
        except StopSchedulerError as error:
            self._fail(error.message, scheduler)
            return
        if not drained:
            self._say(
                f"{scheduler.running} run(s) did not end within the grace; "
                "the next scheduler finds them interrupted."
            )
            _leave_at_once(scheduler, 0)


@contextmanager
def _before_anything_runs(greet: Callable[[], None]) -> Iterator[None]:
    """Print the banner after the initialisation within, and before its first run."""

    def greet_once(**_: object) -> None:
        completed.disconnect(greet_once)
        _keep_for_good()
        greet()

    completed = signal_of(SchedulerInitializationCompleted)
    completed.connect(greet_once, weak=False)
    try:
        yield
    finally:
        completed.disconnect(greet_once)


def _keep_for_good() -> None:
    """Freeze long-lived objects, so that garbage collection does not delay starts."""
    gc.collect()
    gc.freeze()


def _leave_at_once(scheduler: Scheduler, code: int) -> None:
    """End the process although callbacks still run in its threads, or the database is silent."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    farewell = threading.Thread(target=_abandon, args=(scheduler,), daemon=True)
    farewell.start()
    farewell.join(_FAREWELL.total_seconds())
    os._exit(code)


def _abandon(scheduler: Scheduler) -> None:
    with suppress(Exception):
        scheduler.abandon()


def _options(given: dict[str, Any]) -> conf.Options:
    options = conf.options()
    if given["workers"] is not None:
        options = replace(options, WORKERS=given["workers"])
    if given["grace"] is not None:
        options = replace(options, GRACE=timedelta(seconds=given["grace"]))
    return options


def _show_events(verbosity: int) -> None:
    """Log to standard error if the project configures no logging for events.

    From verbosity 2 on, runs have a line for each event, with its fields.
    """
    logger = logging.getLogger("django_declarative_cron")
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    formatter = RunLineFormatter(conf.project_zone())
    if verbosity > 1:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    else:
        handler.setFormatter(formatter)
        handler.addFilter(formatter.filter)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def _add_ports(parser: ArgumentParser) -> None:
    for name, what, pages in (
        ("health", "probes", "/live and /ready"),
        ("metrics", "Prometheus", "/metrics"),
    ):
        parser.add_argument(
            f"--{name}-port",
            type=partial(whole, least=0, most=65_535),
            metavar="PORT",
            help=f"answer {what} at {pages} on this port; 0 takes one that is free",
        )
        parser.add_argument(
            f"--{name}-host",
            default=LOOPBACK,
            metavar="HOST",
            help=f"address to answer {what} at (default %(default)s); 0.0.0.0 for all addresses",
        )
