"""Delivery of the events in the outbox to ``EVENT_SINK``, in a thread of its own."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from .. import __version__
from ..core import events
from ..core.channels import signature_headers
from ..core.event_sink import LONGEST_BACKOFF, LONGEST_PAUSE, SOURCES, Sink, backoff
from ..core.options import Options
from ..exceptions import words_of
from ..models import OutboxEvent
from ..signals import publish, signal_of
from ..store import outbox
from ..store.guard import Member
from .clock import Clock
from .connections import renew
from .loop import BackgroundThread

_READ = 512
_LONGEST_WISH = timedelta(hours=1)


class Answer(Enum):
    """The result of an attempt: REFUSED concerns one event, DOWN the receiver."""

    TAKEN = "taken"
    REFUSED = "refused"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Posted:
    """The result of an attempt, and its reason.

    Args:
        answer: the result.
        error: in one line, empty for a success.
        wish: the pause that the receiver asks for by ``Retry-After``.
    """

    answer: Answer
    error: str = ""
    wish: timedelta | None = None


# These statuses concern the receiver or its client, not the event.
_OF_THE_RECEIVER = {401, 402, 403, 404, 405, 407, 408, 410, 421, 425, 429}


class Poster:
    """Post events to one receiver, over persistent connections.

    Args:
        sink: the receiver.
        connections: the most at the same time.
    """

    def __init__(self, sink: Sink, connections: int) -> None:
        self.sink = sink
        self._http = _library()
        timeout = self._http.Timeout(total=sink.timeout.total_seconds())
        # A redirect is not followed: events and their signature go to the configured address only.
        self._pool = _exchanges(num_pools=1, maxsize=connections, block=True, timeout=timeout)

    def post(self, event_id: str, body: str, now: datetime) -> Posted:
        """Post one event; never raise."""
        content = body.encode()
        try:
            sent = {
                "user-agent": f"django-declarative-cron/{__version__}",
                **{name.lower(): text for name, text in self.sink.headers.items()},
                **signature_headers(event_id, content, now, self.sink.secrets),
            }
            answer = self._pool.request(
                "POST", self.sink.url, body=content, headers=sent, preload_content=False
            )
        except Exception as error:
            return Posted(Answer.DOWN, f"{type(error).__name__}: {words_of(error)}")
        try:
            return self._meaning(answer)
        finally:
            if answer.length_remaining != 0:
                answer.close()  # The rest of it may be long, and nothing reads it.
            answer.release_conn()

    def close(self) -> None:
        self._pool.clear()

    def _meaning(self, answer: Any) -> Posted:
        status = answer.status
        if 200 <= status < 300:
            if answer.length_remaining is not None and answer.length_remaining <= _READ:
                _beginning(answer)
            return Posted(Answer.TAKEN)
        words = " ".join(f"{status} {answer.reason or ''}: {_beginning(answer)}".split())
        if status < 400 or status >= 500 or status in _OF_THE_RECEIVER:
            return Posted(Answer.DOWN, words.rstrip(":"), self._wish(answer))
        return Posted(Answer.REFUSED, words.rstrip(":"))

    def _wish(self, answer: Any) -> timedelta | None:
        try:
            seconds = self._http.Retry().get_retry_after(answer)
        except Exception:
            return None
        if seconds is None:
            return None
        return min(timedelta(seconds=max(seconds, 0)), _LONGEST_WISH)


def _beginning(answer: Any) -> str:
    try:
        # As it was sent: compressed content may decode to any length.
        read: bytes = answer.read(_READ, decode_content=False)
    except Exception:
        return ""
    text = read.decode("utf-8", "replace")
    return "".join(c if c.isprintable() else " " for c in text)


def _exchanges(**options: Any) -> Any:
    from .exchange import Exchanges

    return Exchanges(**options)


def _library() -> Any:
    try:
        import urllib3
    except ImportError:
        raise ImportError(
            'EVENT_SINK needs urllib3: install "django-declarative-cron[events]"'
        ) from None
    return urllib3


LOOK = 5.0
"""Seconds between two queries, where no event in this process asks for one."""

AT_ONCE = 8
"""How many tasks' events are posted at the same time."""

_TASKS = 100
_TIDY = 60.0
_JOIN = 1.0
_NEWS = tuple(map(signal_of, SOURCES))


@dataclass(slots=True)
class _Round:
    """One round: the events by task, and the last monotonic second at which an attempt begins."""

    waiting: deque[list[OutboxEvent]]
    last: float
    delivered: list[OutboxEvent] = field(default_factory=list)
    refused: list[tuple[OutboxEvent, Posted]] = field(default_factory=list)
    down: Posted | None = None


class SinkThread:
    """Deliver events while this instance leads: each at least once, those of a task in order.

    A receiver that is down gets one event at a time, with increasing pauses. An event that it
    refuses delays only the events of the same task.

    Args:
        clock: source of time.
        options: returns the options, which name the sink.
        member: returns this instance, ``None`` before the first initialisation.
    """

    def __init__(
        self, clock: Clock, options: Callable[[], Options], member: Callable[[], Member | None]
    ) -> None:
        self._clock = clock
        self._options = options
        self._member = member
        self._woken = threading.Event()
        self._is_leaving = self._is_ended = False
        self._failures = 0
        self._tidied: float | None = None
        self._thread = BackgroundThread("sink", self._run)
        self._poster: Poster | None = None

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive

    def start(self) -> None:
        """Begin where a sink is configured, unless it runs already."""
        if self.is_alive or self._options().EVENT_SINK is None:
            return
        self._is_leaving = self._is_ended = False
        self._failures = 0
        for signal in _NEWS:
            signal.connect(self._wake)
        self._thread.start()

    def stop(self, deadline: float | None) -> None:
        """Deliver until the deadline at most, and end."""
        for signal in _NEWS:
            signal.disconnect(self._wake)
        grace = self._options().GRACE.total_seconds()
        left = grace if deadline is None else deadline - self._clock.monotonic()
        self._is_leaving = True
        self._woken.set()
        self._thread.join(max(left, 0.0))
        self._is_ended = True
        # A thread that waits for a response ends later, and returns its events to the queue.
        self._thread.join(_JOIN)

    def _wake(self, **_: object) -> None:
        if not self._failures:
            self._woken.set()

    def _run(self) -> None:
        while not self._is_ended:
            self._woken.clear()
            # A round that began before the stop may have missed the last events.
            is_last = self._is_leaving
            pause = self._pass()
            if is_last and pause:
                break
            self._clock.wait(self._woken, pause)
        if self._poster is not None:
            self._poster.close()

    def _pass(self) -> float:
        """Do one round; return the seconds until the next one, 0 where more is waiting."""
        sink, member = self._options().EVENT_SINK, self._member()
        if sink is None or member is None:
            return LOOK
        try:
            return self._round(sink, member)
        except BaseException as error:
            # A receiver of a signal may even raise SystemExit.
            renew(error)
            return self._fails(f"{type(error).__name__}: {words_of(error)}", None)

    def _round(self, sink: Sink, member: Member) -> float:
        poster = self._poster_to(sink)
        self._tidy(sink, member)
        tasks = 1 if self._failures else _TASKS
        hold, leaving = 2 * sink.timeout + timedelta(seconds=2), self._is_leaving
        began = self._clock.monotonic()
        taken = outbox.take(member, hold, tasks, leaving=leaving)
        if not taken:
            return LOOK
        # An attempt must be over before another process may get the event.
        last = began + (hold - sink.timeout).total_seconds()
        done = _Round(deque(taken), last)
        self._post(poster, done)
        refused = [(event, posted.error, self._wait(event)) for event, posted in done.refused]
        outbox.give_back(member, done.delivered, refused)
        if done.down is not None:
            return self._fails(done.down.error, done.down.wish)
        if done.delivered:
            self._succeeds()
        return 0.0 if done.delivered or done.refused else LOOK

    def _post(self, poster: Poster, done: _Round) -> None:
        # Daemon threads, so that a slow answer does not keep the process from ending.
        helpers = [
            threading.Thread(target=self._post_waiting, args=(poster, done), daemon=True)
            for _ in range(min(AT_ONCE, len(done.waiting)) - 1)
        ]
        for helper in helpers:
            helper.start()
        self._post_waiting(poster, done)
        for helper in helpers:
            helper.join()

    def _post_waiting(self, poster: Poster, done: _Round) -> None:
        with suppress(IndexError):
            while True:
                self._post_all(poster, done.waiting.popleft(), done)

    def _post_all(self, poster: Poster, same_task: list[OutboxEvent], done: _Round) -> None:
        """Post the events of one task, up to the first failure."""
        for event in same_task:
            if done.down is not None or self._is_ended or self._clock.monotonic() > done.last:
                return
            posted = poster.post(str(event.event_id), event.body, self._clock.now())
            if posted.answer is Answer.TAKEN:
                done.delivered.append(event)
                continue
            done.refused.append((event, posted))
            if posted.answer is Answer.DOWN:
                done.down = posted
            return

    def _wait(self, event: OutboxEvent) -> timedelta:
        return backoff(event.attempts + 1, random.random(), LONGEST_BACKOFF)

    def _poster_to(self, sink: Sink) -> Poster:
        if self._poster is None or self._poster.sink != sink:
            self._poster = Poster(sink, AT_ONCE)
        return self._poster

    def _tidy(self, sink: Sink, member: Member) -> None:
        now = self._clock.monotonic()
        if self._tidied is not None and now - self._tidied < _TIDY:
            return
        self._tidied = now
        told = outbox.tidy(member, sink.give_up_after, sink.most)
        publish(told)

    def _fails(self, error: str, wish: timedelta | None) -> float:
        """Count a failure of the receiver, publish it at powers of two, and return the pause."""
        self._failures += 1
        if not self._failures & (self._failures - 1):
            told = events.EventDeliveryFailed(
                at=self._clock.now(), error=error, failures=self._failures
            )
            publish([told])
        pause = backoff(self._failures, random.random(), LONGEST_PAUSE)
        return max(pause, wish or pause).total_seconds()

    def _succeeds(self) -> None:
        failures, self._failures = self._failures, 0
        if failures:
            publish([events.EventDeliveryResumed(at=self._clock.now(), failures=failures)])
