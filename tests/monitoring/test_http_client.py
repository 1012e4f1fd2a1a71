"""What is said of a failure has no address in it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.monitoring import http_client
from django_declarative_cron.monitoring.delivery import DeliveryError


@pytest.mark.parametrize(
    "words",
    [
        "MaxRetryError: Max retries exceeded with url: /services/s3cret?key=k3y",
        "LocationError: https://hooks.example.org/services/s3cret?key=k3y",
        "ResponseError: /services/s3cret is gone",
    ],
)
def test_an_address_is_left_out_of_an_error(words: str) -> None:
    said = http_client._without("https://hooks.example.org/services/s3cret?key=k3y", words)
    assert "s3cret" not in said
    assert "k3y" not in said
    assert said.startswith(words.partition(":")[0])


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "urllib3", None)
    with pytest.raises(
        DeliveryError, match=r"install \"django-declarative-cron\[events\]\""
    ) as told:
        http_client.ask("https://hooks.example.org/a", timedelta(seconds=1))
    assert told.value.is_final
