"""Which runner calls the runs of which task."""

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
from .coroutines import CoroutineRunner
from .django_tasks import TasksRunner
from .fork_server_client import Server
from .processes import ProcessRunner, in_process
from .threads import ThreadRunner


class Runners:
    """The runners of one scheduler; each holds nothing before its first run.

    Args:
        options: of the scheduler.
        clock: dates the ends of runs.
        member: gives who this instance is.
        given: calls everything, instead of all others; a simulation brings one.
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
        """Let each get ready for the runs of a registration set."""
        for runner in self._by_name.values():
            runner.prepare(declarations)

    def submit(self, work: Work) -> None:
        """Have a run called by the runner of its task."""
        runner = self._given or self._by_name[_name(work)]
        runner.submit(work)

    def look(self) -> None:
        """Let each do what is to be done now and then."""
        for runner in self._by_name.values():
            runner.look()

    @property
    def loads(self) -> list[Load]:
        """Return how busy each is."""
        return [runner.load for runner in self._by_name.values()]

    def close(self) -> None:
        """Let each give back what it holds; to be called when every run has ended."""
        for runner in [self._given] if self._given else self._by_name.values():
            runner.close()


def call_once(work: Work, clock: Clock) -> Result:
    """Call one run to its end while this thread waits, as the runner of its task does."""
    if _name(work) != PROCESS:
        return perform(work, clock)
    server = Server()
    try:
        return in_process(work, clock, server)
    except Exception as error:
        return failed(work, error, clock.now(), 0.0)
    finally:
        server.close()


def _name(work: Work) -> str:
    named = THREAD if work.declaration is None else work.declaration.runner
    return "coroutine" if named == THREAD and is_async(work.target.function) else named
