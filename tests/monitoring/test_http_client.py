"""Requests to addresses of the settings: retries, and errors without the address."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.monitoring import http_client
from django_declarative_cron.monitoring.delivery import DeliveryError
from django_declarative_cron.monitoring.http_client import post

from ..receiver import Receiver

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    "text",
    [
        "MaxRetryError: Max retries exceeded with url: /services/s3cret?key=k3y",
        "LocationError: https://hooks.example.org/services/s3cret?key=k3y",
        "ResponseError: /services/s3cret is gone",
    ],
)
def test_an_error_does_not_contain_the_address(text: str) -> None:
    url = "https://hooks.example.org/services/s3cret?key=k3y"
    found = http_client._without_address(url, text)
    assert "s3cret" not in found
    assert "k3y" not in found
    assert found.startswith(text.partition(":")[0])


def test_a_refused_connection_is_an_error_without_the_address() -> None:
    closed = Receiver()
    closed.close()
    with pytest.raises(DeliveryError, match="refused") as error:
        post(closed.url, SECOND)
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("status", "requests"), [(503, 3), (500, 3), (429, 3), (408, 3), (404, 1), (400, 1), (302, 1)]
)
def test_only_errors_that_may_pass_are_retried(
    receiver: Receiver, status: int, requests: int
) -> None:
    receiver.behave = lambda got: (status, {"location": "/elsewhere", "retry-after": "60"}, "")
    with pytest.raises(DeliveryError, match=f"it answered {status}"):
        post(receiver.url, SECOND)
    assert [got.path for got in receiver.got] == ["/hook/s3cret"] * requests


def test_a_retry_that_succeeds_is_no_error(receiver: Receiver) -> None:
    statuses = iter([503, 500])
    receiver.behave = lambda got: next(statuses, 204)
    post(receiver.url, SECOND, body=b"hello", headers={"x-key": "1"})
    assert [(got.body, got.headers["x-key"]) for got in receiver.got] == [(b"hello", "1")] * 3


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "urllib3", None)
    with pytest.raises(DeliveryError, match=r"install \"django-declarative-cron\[events\]\""):
        post("https://hooks.example.org/a", SECOND)
