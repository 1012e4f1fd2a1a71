"""Whatever is declared: a result or an error of ours, and both readings agree."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.keys import KEYS, MANAGED
from django_declarative_cron.exceptions import DeclarativeCronError

from .callables import jobs

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.binary(max_size=3),
    st.timedeltas(),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3),
    ),
    max_leaves=6,
)
NAMES = st.one_of(st.sampled_from(["a", "b", "c"]), st.text(max_size=4), SCALARS)
CRONS = st.one_of(
    st.sampled_from(["* * * * *", "0 7 * * 1-5", "*/5 * * * *", "@daily", "0 0 30 2 *"]), SCALARS
)
CALLBACKS = st.one_of(
    st.sampled_from([jobs.send_mail, "tests.callables.jobs.send_mail", "tests.callables.jbos.x"]),
    SCALARS,
)
DELAYS = st.one_of(st.timedeltas(), st.just(timedelta(minutes=5)), SCALARS)
TUPLES = st.tuples(NAMES, CRONS, CALLBACKS, DELAYS)
WORDS = st.sampled_from(
    ["posix", "ojs", "skip", "shift", "both", "thread", "coalesce", "UTC", "Europe/Berlin", "EST"]
)
ENTRIES = st.fixed_dictionaries(
    {"name": NAMES, "cron": CRONS},
    optional={
        "callback": CALLBACKS,
        "retry_delay": DELAYS,
        **{
            key: st.one_of(WORDS, ANYTHING)
            for key in (*KEYS, *MANAGED)
            if key not in ("name", "cron", "callback", "type", "command", "retry_delay")
        },
    },
)
LISTS = st.one_of(ANYTHING, st.lists(st.one_of(TUPLES, ENTRIES, ANYTHING), max_size=4))


@pytest.mark.requirement(
    "003 Input Validation/1", "004 Domains & Data Types/1", "004 Safety Axioms/3"
)
@given(LISTS)
def test_any_input_is_understood_or_refused(registrations: Any) -> None:
    errors = [found for found in conf.problems(registrations) if found.error is not None]
    try:
        declared = conf.declarations(registrations)
    except DeclarativeCronError as error:
        first = errors[0].error
        assert first is not None
        assert (type(first), first.message) == (type(error), error.message)
    else:
        assert errors == []
        assert len(declared) == len(registrations)
        assert all(json.dumps(each.as_data(), allow_nan=False) for each in declared)
