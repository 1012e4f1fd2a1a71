"""The end of a run: requested before its time, or as a result."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from ..core.declarations.values import exceeds, flaw_of_data
from ..core.retry import names_of
from ..core.tracebacks import traceback_of
from ..exceptions import class_of, shortened, text_of, without_secrets
from ..store.results import Result

if TYPE_CHECKING:
    from .work import Work


Why = Literal["timed_out", "cancelled"]


class Ending:
    """The request to end a run; the first request sets the reason.

    After the end of the callback, requests have no effect.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.why: Why | None = None
        self._over = False
        self._hooks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def ask(self, why: Why) -> bool:
        """Ask the run to end; return whether this is the first request, in time."""
        with self._lock:
            if self._over or self.why is not None:
                return False
            self.why = why
            hooks = list(self._hooks)
        self.asked.set()
        for hook in hooks:
            hook()
        return True

    @property
    def is_over(self) -> bool:
        """Return whether the callback has ended; its result may still be on its way."""
        return self._over

    def on_ask(self, hook: Callable[[], object]) -> None:
        """Call a function when the run is asked to end; immediately where it was already."""
        with self._lock:
            self._hooks.append(hook)
            is_late = self.why is not None
        if is_late:
            hook()

    def settle(self) -> Why | None:
        """Take note that the callback has ended; return why it was asked to, if it was."""
        with self._lock:
            self._over = True
            return self.why


ERROR_LENGTH = 2_000
TRACEBACK_LENGTH = 64 * 1024
VALUE_LENGTH = 64 * 1024


class TimedOutError(TimeoutError):
    """Report that a run took longer than its task's ``timeout``."""


def succeeded(work: Work, at: datetime, value: Any = None) -> Result:
    """Return the result of a run that returned."""
    kept, remark = _value(value)
    if remark:
        work.tail.add(remark + "\n")
    result = Result(
        work.id,
        work.run.task_name,
        at,
        succeeded=True,
        value=kept,
        log=_log(work),
        declaration=work.declaration,
    )
    return _settled(work, result)


def failed(work: Work, error: BaseException, at: datetime) -> Result:
    """Return the result of a run that raised."""
    result = Result(
        work.id,
        work.run.task_name,
        at,
        succeeded=False,
        # The error goes into logs and notifications; the traceback needs a permission.
        error=worded(_one_line(error)),
        traceback=shortened(escaped(_traceback(error)), TRACEBACK_LENGTH),
        errors=names_of(type(error)),
        log=_log(work),
        declaration=work.declaration,
    )
    return _settled(work, result)


def committed(result: Result, hooks: Sequence[BaseException]) -> Result:
    """Return the success of a run that is committed, with the errors of its commit hooks."""
    if not hooks:
        return replace(result, recorded=True)
    more = f" (and {len(hooks) - 1} more)" if len(hooks) > 1 else ""
    return replace(
        result,
        recorded=True,
        error=worded(f"on_commit: {_one_line(hooks[0])}{more}"),
        traceback=shortened(escaped("\n".join(map(_traceback, hooks))), TRACEBACK_LENGTH),
    )


def _log(work: Work) -> str:
    return storable(str(work.tail), TRACEBACK_LENGTH)


def _settled(work: Work, result: Result) -> Result:
    """Return the outcome that was requested, if one was, else the result."""
    why = work.ending.settle()
    return result if why is None else cut_short(work, result, why)


def cut_short(work: Work, result: Result, why: Why) -> Result:
    """Return the result of a run that was asked to end and has."""
    error, names = "cancelled", tuple[str, ...]()
    if why == "timed_out":
        error = "timed out" + ("" if work.timeout is None else f" after {work.timeout:g} s")
        names = names_of(TimedOutError)
    return replace(result, succeeded=False, outcome=why, error=error, errors=names, value=None)


def cancelled(work: Work, at: datetime) -> Result:
    """Return the result of a run that was asked to end before it was called."""
    never = Result(work.id, work.run.task_name, at, succeeded=False)
    return cut_short(work, never, work.ending.settle() or "cancelled")


def storable(text: str, length: int) -> str:
    """Cut a text, keeping its end, and escape characters that a database rejects."""
    clean = escaped(text)
    return clean if len(clean) <= length else "…" + clean[-length:]


def worded(error: str) -> str:
    """Return an error as it is stored: its class, its beginning and its end, no secrets."""
    # Before it is cut: a part of a login or a secret would not be recognised.
    return shortened(without_secrets(escaped(error)), ERROR_LENGTH)


def escaped(text: str) -> str:
    """Escape characters that a database rejects."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def _value(value: Any) -> tuple[Any, str]:
    """Return the stored form of a returned value, and a remark if it is not stored."""
    if value is None:
        return None, ""
    try:
        if exceeds(value, VALUE_LENGTH):
            # Encoding more than that would delay every other thread.
            return None, _not_kept(f"has more than {VALUE_LENGTH} characters")
        flaw = flaw_of_data(value)
        length = 0 if flaw else len(json.dumps(value, ensure_ascii=False))
    except Exception as error:
        # A subclass of a list or dict may do anything when it is read.
        flaw, length = f"cannot be read: {type(error).__name__}", 0
    if flaw:
        return None, _not_kept(flaw)
    if length > VALUE_LENGTH:
        return None, _not_kept(f"has {length} characters")
    return json.loads(json.dumps(value)), ""


def _not_kept(flaw: str) -> str:
    return f"(What the callback returned is not kept: it {flaw}.)"


def _one_line(error: BaseException) -> str:
    text, name = text_of(error, whole_words=True), class_of(error)
    return f"{name}: {text}" if text else name


def _traceback(error: BaseException) -> str:
    """Format an exception without the frames that only called the callback."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_globals.get("__name__") in _CALLERS:
        frame = frame.tb_next
    return traceback_of(error, TRACEBACK_LENGTH, frame)


_CALLERS = {f"{__package__}.work", f"{__package__}.runners.asyncio"}
