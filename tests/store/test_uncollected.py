"""The collector of garbage waits for a batch, and is left as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from django_declarative_cron.store.uncollected import uncollected


@pytest.fixture
def collector() -> Iterator[None]:
    yield
    gc.enable()


def test_nothing_is_collected_meanwhile_and_again_afterwards(collector: None) -> None:
    with pytest.raises(ZeroDivisionError), uncollected(), uncollected():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()


def test_who_collects_nothing_does_not_afterwards(collector: None) -> None:
    gc.disable()
    with uncollected():
        assert not gc.isenabled()
    assert not gc.isenabled()
