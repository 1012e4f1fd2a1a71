"""A receiver that answers byte by byte holds its sender no longer than the timeout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from django_declarative_cron.core.event_sink import Sink
from django_declarative_cron.monitoring.delivery import DeliveryError
from django_declarative_cron.monitoring.http_client import post
from django_declarative_cron.runtime.event_delivery import Answer, Poster

from ..timeouts import TIMEOUT
from .trickle import ANSWER, Trickle

NOW = datetime(2027, 1, 1, tzinfo=UTC)
SOON = timedelta(seconds=0.3)
HEAD = ANSWER.index(b"x")


@pytest.fixture
def trickle() -> Iterator[Callable[..., Trickle]]:
    made: list[Trickle] = []

    def make(at_once: int = 0) -> Trickle:
        made.append(Trickle(at_once))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_ping_or_message_is_not_taken(trickle: Callable[..., Trickle]) -> None:
    with pytest.raises(DeliveryError, match=r"took too long|timed out"):
        post(trickle().url, SOON, body=b"hello")


def test_an_event_is_not_taken_and_comes_again(trickle: Callable[..., Trickle]) -> None:
    poster = Poster(Sink(url=trickle().url, timeout=SOON), 1)
    posted = poster.post("1", "{}", NOW)
    assert posted.answer is Answer.DOWN
    assert "took too long" in posted.error or "timed out" in posted.error
    poster.close()


def test_what_comes_behind_the_head_of_an_answer_is_not_waited_for(
    trickle: Callable[..., Trickle],
) -> None:
    post(trickle(HEAD).url, timedelta(seconds=TIMEOUT))
