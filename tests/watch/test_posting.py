"""What is said of a failure has no address in it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.watch import posting
from django_declarative_cron.watch.courier import SendingError


@pytest.mark.parametrize(
    "words",
    [
        "MaxRetryError: Max retries exceeded with url: /services/s3cret?key=k3y",
        "LocationError: https://hooks.example.org/services/s3cret?key=k3y",
        "ResponseError: /services/s3cret is gone",
    ],
)
def test_an_address_is_left_out_of_an_error(words: str) -> None:
    said = posting._without("https://hooks.example.org/services/s3cret?key=k3y", words)
    assert "s3cret" not in said
    assert "k3y" not in said
    assert said.startswith(words.partition(":")[0])


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "urllib3", None)
    with pytest.raises(
        SendingError, match=r"install \"django-declarative-cron\[events\]\""
    ) as told:
        posting.ask("https://hooks.example.org/a", timedelta(seconds=1))
    assert told.value.is_final
