"""Delivery of events to a receiver, which may be slow, down, or refuse them."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import standardwebhooks

from django_declarative_cron import Scheduler, conf
from django_declarative_cron.core import events
from django_declarative_cron.core.event_sink import SOURCES, Sink
from django_declarative_cron.models import OutboxEvent, SchedulerState, TaskRun
from django_declarative_cron.monitoring.delivery import DeliveryError
from django_declarative_cron.monitoring.http_client import post
from django_declarative_cron.runtime import event_delivery
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.event_delivery import Answer, Posted, Poster, SinkThread
from django_declarative_cron.signals import signal_of
from django_declarative_cron.store import outbox

from ..receiver import SECRET, Got, Post, Receiver
from ..store.conftest import Deployment
from ..timeouts import TIMEOUT, wait_until
from .conftest import Heard, Live, nothing, registrations

NOW = datetime(2027, 1, 1, tzinfo=UTC)
SOON = timedelta(seconds=0.3)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n"
ANSWER = HEAD + b"x" * 40


@pytest.fixture
def trickle() -> Iterator[Callable[[int], str]]:
    """Give the address of a receiver whose answer comes byte by byte, but for its beginning."""
    ending, server = threading.Event(), socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(at_once: int) -> None:
        with suppress(OSError):
            while not ending.is_set():
                answer(server.accept()[0], at_once)

    def answer(taken: socket.socket, at_once: int) -> None:
        with taken, suppress(OSError):
            taken.recv(65536)
            taken.sendall(ANSWER[:at_once])
            for byte in ANSWER[at_once:]:
                if ending.wait(0.1):
                    return
                taken.sendall(bytes([byte]))

    def start(at_once: int) -> str:
        threads.append(threading.Thread(target=serve, args=(at_once,)))
        threads[-1].start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/hook"

    yield start
    ending.set()
    with suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
    server.close()
    for thread in threads:
        thread.join()


def test_what_comes_too_slowly_is_not_taken_and_an_event_comes_again(
    trickle: Callable[[int], str],
) -> None:
    url = trickle(0)
    with pytest.raises(DeliveryError, match=r"took too long|timed out"):
        post(url, SOON, body=b"hello")
    poster = Poster(Sink(url=url, timeout=SOON), 1)
    posted = poster.post("1", "{}", NOW)
    assert posted.answer is Answer.DOWN
    assert "took too long" in posted.error or "timed out" in posted.error
    poster.close()


def test_what_comes_behind_the_head_of_an_answer_is_not_waited_for(
    trickle: Callable[[int], str],
) -> None:
    post(trickle(len(HEAD)), timedelta(seconds=TIMEOUT))


def test_without_the_library_of_signatures_an_event_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "standardwebhooks", None)
    poster = Poster(Sink(url="http://127.0.0.1:9/", secrets=(SECRET,)), 1)
    posted = poster.post("1", "{}", NOW)
    assert posted.answer is Answer.DOWN
    assert "standardwebhooks" in posted.error
    poster.close()


LIFE = ["cron.triggered", "job.started", "job.completed"]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again soon."""
    monkeypatch.setattr(event_delivery, "LOOK", 0.05)
    monkeypatch.setattr(event_delivery, "LONGEST_PAUSE", timedelta(milliseconds=50))
    monkeypatch.setattr(event_delivery, "LONGEST_BACKOFF", timedelta(milliseconds=50))


Begin = Callable[..., None]


def outbox_event(name: str, deployment: Deployment) -> None:
    """Store an event that nobody in this process has been told of."""
    OutboxEvent.objects.create(
        scheduler=SchedulerState.objects.get(),
        event_id=uuid.uuid4(),
        type="job.started",
        task_name=name,
        body=json.dumps({"type": "job.started"}),
        created_at=deployment.now,
    )


def until_waiting_are(count: int) -> None:
    wait_until(lambda: OutboxEvent.objects.count() == count, f"{count} events that wait")


@pytest.fixture
def begin(live: Live, receiver: Receiver, post_to: Post) -> Begin:
    """Let a task run once, with a sink for its events."""

    def run_once(**sink: Any) -> None:
        post_to(receiver.url, **sink)
        live.run(a=nothing)

    return run_once


def test_events_are_posted_in_order_signed_and_forgotten(receiver: Receiver, begin: Begin) -> None:
    """By the old secret and the new one both."""
    new = "whsec_" + "bmV3" * 10
    begin(headers={"Authorization": "Bearer of events"}, secret=[new, SECRET])
    receiver.wait(lambda r: len(r.taken) == 3)
    assert receiver.kinds() == LIFE
    until_waiting_are(0)
    for got in receiver.taken:
        for secret in (new, SECRET):
            assert standardwebhooks.Webhook(secret).verify(got.body, got.headers) == got.envelope
        assert got.headers["webhook-id"] == got.envelope["id"]
        assert got.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
        assert got.headers["authorization"] == "Bearer of events"
        assert got.path == "/hook/s3cret"


def test_a_receiver_that_fails_gets_everything_in_order_with_the_same_names(
    receiver: Receiver, begin: Begin, heard: Heard
) -> None:
    answers = iter([500, 503, 429])
    receiver.behave = lambda got: next(answers, 200)
    begin()
    receiver.wait(lambda r: len(r.taken) == 3)
    assert receiver.kinds() == LIFE
    assert [got.kind for got in receiver.got] == ["cron.triggered"] * 3 + LIFE
    assert len({got.headers["webhook-id"] for got in receiver.got[:4]}) == 1
    assert [event.failures for event in heard.of("EventDeliveryFailed")] == [1, 2]
    assert heard.of("EventDeliveryFailed")[0].error == "500 Internal Server Error"
    assert [event.failures for event in heard.wait_for("EventDeliveryResumed")] == [3]


def test_nobody_there_is_told_without_the_secrets_of_the_url(
    receiver: Receiver, begin: Begin, heard: Heard
) -> None:
    receiver.close()
    begin()
    failed = heard.wait_for("EventDeliveryFailed")[0]
    assert "refused" in failed.error
    assert "s3cret" not in failed.error
    again = Receiver(port=receiver.port)
    again.wait(lambda r: len(r.taken) == 3)
    assert again.kinds() == LIFE
    again.close()


def test_a_redirect_is_not_followed(receiver: Receiver, begin: Begin, heard: Heard) -> None:
    other = Receiver()
    receiver.behave = lambda got: (307, {"location": other.url}, "")
    begin()
    assert heard.wait_for("EventDeliveryFailed")[0].error == "307 Temporary Redirect"
    assert other.got == []
    other.close()


def test_a_receiver_that_hangs_delays_no_run_and_no_stop(
    live: Live, receiver: Receiver, post_to: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def hang(self: Poster, *given: Any) -> Posted:
        asked.set()
        may_end.wait(2 * TIMEOUT)
        ended.set()
        return Posted(Answer.DOWN, "it hung")

    monkeypatch.setattr(Poster, "post", hang)
    post_to(receiver.url)
    live.start(a=nothing, b=nothing)
    live.ask("a")
    assert asked.wait(TIMEOUT)
    live.ask("b")
    live.until("TaskRunCompleted", 2)
    assert live.scheduler.stop(grace=timedelta(seconds=0.2))
    # Only now the receiver may come to an end: nobody has waited for it.
    assert not ended.is_set()
    assert OutboxEvent.objects.count() == 6
    may_end.set()
    assert ended.wait(TIMEOUT)


def test_an_answer_that_comes_late_is_none_and_the_event_comes_again(
    receiver: Receiver, begin: Begin
) -> None:
    late = threading.Event()
    receiver.behave = lambda got: 200 if len(receiver.got) > 1 or late.wait(TIMEOUT) else 500
    begin(timeout=0.3)
    receiver.wait(lambda r: len(r.taken) == 3)
    late.set()
    assert [got.kind for got in receiver.got] == ["cron.triggered", *LIFE]
    assert receiver.got[0].envelope == receiver.got[1].envelope


def test_an_event_that_is_refused_holds_up_its_own_task_only(
    live: Live, receiver: Receiver, post_to: Post
) -> None:
    def behave(got: Got) -> Any:
        return (400, {}, "no such shop") if got.envelope["data"]["cron_name"] == "a" else 200

    receiver.behave = behave
    post_to(receiver.url)
    live.run(a=nothing, b=nothing)
    receiver.wait(lambda r: len(r.taken) == 3 and len(r.got) > 5)
    assert receiver.kinds() == LIFE
    assert {got.kind for got in receiver.got if got not in receiver.taken} == {"cron.triggered"}
    assert not live.heard.of("EventDeliveryFailed")
    until_waiting_are(3)
    first = OutboxEvent.objects.order_by("id")[0]
    assert (first.error, first.attempts > 0) == ("400 Bad Request: no such shop", True)


def test_a_stop_delivers_what_is_left(live: Live, receiver: Receiver, post_to: Post) -> None:
    gate = threading.Event()
    receiver.behave = lambda got: 200 if gate.wait(TIMEOUT) else 500
    post_to(receiver.url)
    live.run(**dict.fromkeys("abc", lambda: 1 // 0))
    live.until("TaskRunFailed", 3)
    threading.Timer(0.2, gate.set).start()
    assert live.scheduler.stop()
    assert OutboxEvent.objects.count() == 0
    for name in "abc":
        mine = [g.kind for g in receiver.taken if g.envelope["data"]["cron_name"] == name]
        assert mine == ["cron.triggered", "job.started", "job.failed", "job.retrying"]


def test_a_stop_during_a_look_that_finds_nothing_looks_once_more(
    transactional_db: None, receiver: Receiver, post_to: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = Deployment(1)
    deployment.initialize()
    post_to(receiver.url)
    thread = SinkThread(system_clock, conf.options, lambda: deployment.member)
    looks, looking = outbox.take, threading.Event()

    def look(*args: Any, **kwargs: Any) -> Any:
        found = looks(*args, **kwargs)
        if not looking.is_set():
            looking.set()
            while not thread._is_leaving:
                time.sleep(0.01)
        return found

    monkeypatch.setattr(outbox, "take", look)
    thread.start()
    assert looking.wait(TIMEOUT)
    outbox_event("a", deployment)
    thread.stop(None)
    assert receiver.kinds() == ["job.started"]


def test_a_stop_does_not_wait_for_a_receiver_that_is_down(
    live: Live, receiver: Receiver, begin: Begin
) -> None:
    receiver.behave = lambda got: 503
    begin()
    live.until("TaskRunCompleted")
    began = time.monotonic()
    assert live.scheduler.stop(grace=timedelta(seconds=TIMEOUT))
    assert time.monotonic() - began < TIMEOUT
    assert OutboxEvent.objects.count() == 3


def test_without_a_sink_there_is_no_thread(live: Live) -> None:
    live.start(a=nothing)
    assert "declarative-cron-sink" not in {thread.name for thread in threading.enumerate()}


def test_a_standby_delivers_nothing(live: Live, receiver: Receiver, post_to: Post) -> None:
    post_to(receiver.url)
    live.start(a=nothing)
    second = Scheduler()
    second.initialize(registrations(a=nothing))
    try:
        for n in range(3):
            live.ask("a")
            receiver.wait(lambda r, n=n: len(r.taken) == 3 * (n + 1))
        assert receiver.kinds() == LIFE * 3
        assert TaskRun.objects.count() == 3
    finally:
        second.stop()


def test_a_receiver_that_is_down_is_tried_with_one_event_at_a_time(
    transactional_db: None, receiver: Receiver, post_to: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_delivery, "AT_ONCE", 2)
    deployment = Deployment(1)
    deployment.initialize()
    for name in "abcdef":
        outbox_event(name, deployment)
    post_to(receiver.url)
    together = threading.Barrier(2)

    def behave(got: Got) -> int:
        if len(receiver.got) <= 2:
            together.wait(TIMEOUT)
        return 503

    receiver.behave = behave
    thread = SinkThread(system_clock, conf.options, lambda: deployment.member)
    counts = []
    for _ in range(4):
        thread._pass()
        counts.append(len(receiver.got))
    assert counts[0] == 2
    assert [after - before for before, after in pairwise(counts)] == [1, 1, 1]
    receiver.behave = lambda got: 200
    OutboxEvent.objects.update(next_attempt_at=None)
    assert thread._pass() == 0.0
    assert len(receiver.taken) == 1
    thread._pass()
    assert not OutboxEvent.objects.exists()


class Idle(SinkThread):
    """One that is told of news, and does nothing with them."""

    def _run(self) -> None:
        pass


@pytest.fixture
def idle(post_to: Post) -> Iterator[Idle]:
    post_to("http://127.0.0.1:9/")
    made = Idle(system_clock, conf.options, lambda: None)
    made.start()
    yield made
    made.stop(None)


def woken_by(idle: Idle, kind: type[events.Event]) -> bool:
    idle._woken.clear()
    # Others may listen still, who miss the fields of the event.
    signal_of(kind).send_robust(sender=kind)
    return idle._woken.is_set()


def test_it_is_woken_by_every_event_that_is_told_until_it_has_stopped(idle: Idle) -> None:
    told = {kind for kind in events.ALL if woken_by(idle, kind)}
    assert told == set(SOURCES)
    assert {events.TaskRunFetched, events.TaskRunCancelRequested, events.TaskSkipped} <= told
    assert events.TaskPreserved not in told
    idle.stop(None)
    assert not any(woken_by(idle, kind) for kind in events.ALL)
