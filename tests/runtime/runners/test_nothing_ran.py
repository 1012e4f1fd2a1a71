"""A callback that returns code in place of running it has failed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from .conftest import Bench


@pytest.mark.parametrize("kind", ["thread", "process"])
@pytest.mark.parametrize(
    ("callback", "returned"),
    [
        ("gives_generator", "generator"),
        ("decorated", "generator"),
        ("gives_map", "map"),
        ("is_context_manager", "_GeneratorContextManager"),
        ("gives_coroutine_asynchronously", "coroutine"),
        ("gives_generator_asynchronously", "generator"),
    ],
)
def test_code_that_is_returned_and_not_run_is_a_failure(
    share_server: None, make_bench: Callable[..., Bench], kind: str, callback: str, returned: str
) -> None:
    bench = make_bench(kind)
    run = bench.run(callback)
    assert (run.outcome, run.error) == (
        "failed",
        f"NothingRanError: the callback returned a {returned}, which nothing iterates over or "
        "awaits: its code has not run",
    )
    assert bench.notes.read_text() == ""


def test_an_atomic_run_that_returns_code_is_rolled_back(make_bench: Callable[..., Bench]) -> None:
    run = make_bench("thread").run("works_and_gives_generator", atomic=True)
    assert run.outcome == "failed"
    assert not User.objects.exists()
