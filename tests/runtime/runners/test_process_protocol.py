"""The conversation of a run with its scheduler: nothing is lost, nothing goes elsewhere."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from django_declarative_cron.runtime.runners.process_protocol import Talk

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs poll")


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Talk]]:
    """Give the scheduler's end and the run's."""
    mine, theirs = socket.socketpair()
    talk = Talk(theirs)
    yield mine, talk
    talk._socket.close()
    mine.close()


def test_messages_that_come_in_pieces_are_all_heard(ends: tuple[socket.socket, Talk]) -> None:
    scheduler, talk = ends
    messages = talk.messages()
    scheduler.sendall(b'{"id": 1}\n{"ending": "cancelled"}\n{"stop')
    assert [next(messages), next(messages)] == [{"id": 1}, {"ending": "cancelled"}]
    scheduler.sendall(b'ping": true}\n')
    assert next(messages) == {"stopping": True}


def test_messages_end_with_the_scheduler(ends: tuple[socket.socket, Talk]) -> None:
    scheduler, talk = ends
    scheduler.close()
    assert list(talk.messages()) == []
    assert talk.is_ours


def test_nothing_is_said_into_what_got_its_number(
    ends: tuple[socket.socket, Talk], tmp_path: Path
) -> None:
    scheduler, talk = ends
    assert talk.say(log="a")
    path, number = tmp_path / "file", talk._socket.fileno()
    opened = os.open(path, os.O_RDWR | os.O_CREAT)
    os.dup2(opened, number)
    assert not talk.is_ours
    assert not talk.say(log="b")
    talk.break_line()
    assert list(talk.messages()) == []
    assert path.read_bytes() == b""
    assert [json.loads(line) for line in scheduler.recv(100).splitlines()] == [{"log": "a"}]
    os.close(opened)
