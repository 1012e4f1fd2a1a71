"""Posting what is in the outbox, in a thread apart from the loop that evaluates."""

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

from django.db import connections

from .. import __version__
from ..core import events
from ..core.channels import signature_headers
from ..core.event_sink import LONGEST_BACKOFF, LONGEST_PAUSE, SOURCES, Sink, backoff
from ..core.options import Options
from ..exceptions import words_of
from ..signals import publish, signal_of
from ..store import outbox
from ..store.database import alias
from ..store.guard import Member
from ..store.outbox import Parcel
from .clock import Clock
from .connections import leave_pool, renew

_READ = 512
_LONGEST_WISH = timedelta(hours=1)


class Answer(Enum):
    """What became of an attempt."""

    TAKEN = "taken"
    REFUSED = "refused"
    """This event was not taken; others may be."""
    DOWN = "down"
    """The receiver takes nothing at the moment."""


@dataclass(frozen=True, slots=True)
class Posted:
    """What became of an attempt, and why.

    Args:
        answer: in one word.
        error: in one line, empty where it was taken.
        wish: how long the receiver asks to be left alone.
    """

    answer: Answer
    error: str = ""
    wish: timedelta | None = None


# By these a receiver says something of itself or of who asks, and nothing of the event.
_OF_THE_RECEIVER = {401, 402, 403, 404, 405, 407, 408, 410, 421, 425, 429}


class Poster:
    """Post events to one receiver, over connections that are kept.

    Args:
        sink: the receiver.
        connections: how many at the same time.
    """

    def __init__(self, sink: Sink, connections: int) -> None:
        self.sink = sink
        self._http = _library()
        timeout = self._http.Timeout(total=sink.timeout.total_seconds())
        # A redirect is not followed: events and their signature go where they were meant to go.
        self._pool = _exchanges(num_pools=1, maxsize=connections, block=True, timeout=timeout)

    def post(self, event_id: str, body: str, now: datetime) -> Posted:
        """Post one event; nothing is raised."""
        content = body.encode()
        sent = {
            "user-agent": f"django-declarative-cron/{__version__}",
            **{name.lower(): text for name, text in self.sink.headers.items()},
            **signature_headers(event_id, content, now, self.sink.secrets),
        }
        try:
            answer = self._pool.request(
                "POST", self.sink.url, body=content, headers=sent, preload_content=False
            )
        except Exception as error:
            return Posted(Answer.DOWN, f"{type(error).__name__}: {words_of(error)}")
        try:
            return self._meaning(answer)
        finally:
            if answer.length_remaining != 0:
                answer.close()  # The rest of it is of no interest, and may be long.
            answer.release_conn()

    def close(self) -> None:
        """Return the connections back."""
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
        # As it came: what is unpacked may be of any length.
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
"""Seconds between two looks, where nothing in this process tells of news."""

AT_ONCE = 8
"""How many tasks' events are posted at the same time."""

_TASKS = 100
_TIDY = 60.0
_JOIN = 1.0
_NEWS = tuple(map(signal_of, SOURCES))


@dataclass(slots=True)
class _Round:
    """What became of the events that were taken together.

    Args:
        waiting: those that nobody has begun with.
        last: monotonic second after which no attempt may begin.
    """

    waiting: deque[list[Parcel]]
    last: float
    delivered: list[Parcel] = field(default_factory=list)
    refused: list[tuple[Parcel, Posted]] = field(default_factory=list)
    down: Posted | None = None


class SinkThread:
    """Deliver events while this instance leads, each at least once, those of a task in order.

    A receiver that is down is tried with one event at a time, less and less often. What it
    refuses waits alone, and what belongs to the same task behind it.

    Args:
        clock: source of time.
        options: gives the options; the sink is looked for in them at each start.
        member: gives who this instance is, ``None`` before the first initialisation.
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
        self._thread: threading.Thread | None = None
        self._poster: Poster | None = None

    @property
    def is_alive(self) -> bool:
        """Return whether its thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin where a sink is configured, unless it runs already."""
        if self.is_alive or self._options().EVENT_SINK is None:
            return
        self._is_leaving = self._is_ended = False
        self._failures = 0
        for signal in _NEWS:
            signal.connect(self._wake)
        self._thread = threading.Thread(target=self._run, name="declarative-cron-sink", daemon=True)
        self._thread.start()

    def stop(self, deadline: float | None) -> None:
        """Deliver what can be delivered by then, and end."""
        for signal in _NEWS:
            signal.disconnect(self._wake)
        thread = self._thread
        if thread is None:
            return
        grace = self._options().GRACE.total_seconds()
        left = grace if deadline is None else deadline - self._clock.monotonic()
        self._is_leaving = True
        self._woken.set()
        thread.join(max(left, 0.0))
        self._is_ended = True
        # One that waits for an answer ends by itself, with the events in hand given back.
        thread.join(_JOIN)
        self._thread = None

    def _wake(self, **_: object) -> None:
        if not self._failures:
            self._woken.set()

    def _run(self) -> None:
        leave_pool(alias())
        while not self._is_ended:
            self._woken.clear()
            # A pass that began before may have looked before the last runs had ended.
            is_last = self._is_leaving
            pause = self._pass()
            if is_last and pause:
                break
            self._clock.wait(self._woken, pause)
        if self._poster is not None:
            self._poster.close()
        connections.close_all()

    def _pass(self) -> float:
        """Do one round; give the seconds until the next one, 0 where more is waiting."""
        sink, member = self._options().EVENT_SINK, self._member()
        if sink is None or member is None:
            return LOOK
        try:
            return self._round(sink, member)
        except BaseException as error:
            # Whatever it was, a receiver of a signal that raises SystemExit too.
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
        # An attempt must be over before somebody else may be given the event.
        last = began + (hold - sink.timeout).total_seconds()
        done = _Round(deque(taken), last)
        self._post(poster, done)
        refused = [(parcel, posted.error, self._wait(parcel)) for parcel, posted in done.refused]
        outbox.give_back(member, done.delivered, refused)
        if done.down is not None:
            return self._fails(done.down.error, done.down.wish)
        if done.delivered:
            self._succeeds()
        return 0.0 if done.delivered or done.refused else LOOK

    def _post(self, poster: Poster, done: _Round) -> None:
        # Daemons: one that waits for an answer does not keep the process from ending.
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

    def _post_all(self, poster: Poster, parcels: list[Parcel], done: _Round) -> None:
        """Post the events of one task, up to the first that is not taken."""
        for parcel in parcels:
            if done.down is not None or self._is_ended or self._clock.monotonic() > done.last:
                return
            posted = poster.post(parcel.event_id, parcel.body, self._clock.now())
            if posted.answer is Answer.TAKEN:
                done.delivered.append(parcel)
                continue
            done.refused.append((parcel, posted))
            if posted.answer is Answer.DOWN:
                done.down = posted
            return

    def _wait(self, parcel: Parcel) -> timedelta:
        return backoff(parcel.attempts + 1, random.random(), LONGEST_BACKOFF)

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
        """Count a failure of the receiver, tell of it less and less often, and give the pause."""
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
