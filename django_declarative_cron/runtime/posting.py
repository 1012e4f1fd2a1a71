"""One attempt to post one event, and what its answer means."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from .. import __version__
from ..core.sink import Sink
from ..core.webhook import headers
from ..exceptions import words_of

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
        """Post one event; nothing is raised.

        Args:
            event_id: the same in each attempt.
            body: JSON.
            now: the instant of this attempt.
        """
        content = body.encode()
        sent = {
            "user-agent": f"django-declarative-cron/{__version__}",
            **{name.lower(): text for name, text in self.sink.headers.items()},
            **headers(event_id, content, now, self.sink.secrets),
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
        """Give the connections back."""
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
