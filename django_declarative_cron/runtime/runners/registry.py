"""The runners of a scheduler, by the names that declarations use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...core.declarations.declaration import Declaration
from ...core.declarations.runners import DJANGO_TASKS, PROCESS, THREAD, is_async
from ...core.options import Options
from ...store.guard import Member
from ...store.results import Result
from ..clock import Clock
from ..outcome import failed
from ..work import Work, perform
from . import Load, Runner
from .asyncio import CoroutineRunner
from .django_tasks import TasksRunner
from .fork_server_client import Server
from .process import ProcessRunner, in_process
from .thread import ThreadRunner


class Runners:
    """The runners of one scheduler; each starts threads or processes at its first run.

    Args:
        options: of the scheduler.
        clock: dates the ends of runs.
        member: returns this instance.
        given: calls everything instead of them, in a simulation.
    """

    def __init__(
        self,
        options: Options,
        clock: Clock,
        member: Callable[[], Member | None],
        given: Runner | None = None,
    ) -> None:
        makers: Mapping[str, Callable[[], Runner]] = {
            THREAD: lambda: ThreadRunner(options.WORKERS, clock),
            "coroutine": lambda: CoroutineRunner(clock),
            PROCESS: lambda: ProcessRunner(options.WORKERS, clock),
            DJANGO_TASKS: lambda: TasksRunner(options.WORKERS, clock, member),
        }
        self._given = given
        self._by_name = {} if given else {name: make() for name, make in makers.items()}

    def prepare(self, declarations: Sequence[Declaration]) -> None:
        for runner in self._by_name.values():
            runner.prepare(declarations)

    def submit(self, work: Work) -> None:
        runner = self._given or self._by_name[_name(work)]
        runner.submit(work)

    def look(self) -> None:
        for runner in self._by_name.values():
            runner.look()

    @property
    def loads(self) -> list[Load]:
        return [runner.load for runner in self._by_name.values()]

    def close(self) -> None:
        for runner in [self._given] if self._given else self._by_name.values():
            runner.close()


def call_once(work: Work, clock: Clock) -> Result:
    """Call one run to its end in this thread, or in a process if its task has that runner."""
    if _name(work) != PROCESS:
        return perform(work, clock)
    server = Server()
    try:
        return in_process(work, clock, server)
    except Exception as error:
        return failed(work, error, clock.now())
    finally:
        server.close()


def _name(work: Work) -> str:
    named = THREAD if work.declaration is None else work.declaration.runner
    return "coroutine" if named == THREAD and is_async(work.target.function) else named
