"""The idle look: what it is asked with, and by which options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings

from django_declarative_cron import conf
from django_declarative_cron.store.guard import peek

from .conftest import Deployment


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["50 % off", "%s", "it's", 'a "b"', "back\\slash"])
def test_a_deployment_is_looked_at_by_its_name_whatever_is_in_it(name: str) -> None:
    made = Deployment(1)
    made.initialize()
    assert peek(replace(made.member, deployment=name)) is None
    made.member = replace(made.member, deployment=name)
    made.initialize()
    seen = peek(made.member)
    assert seen is not None
    assert (seen.leader, seen.digest) == (made.member.instance, made.member.digest)


@pytest.mark.parametrize("given", [None, {}, {"EXTERNAL_WORKERS": False}, {"WORKERS": 3}])
@pytest.mark.parametrize("is_on", [True, False])
def test_whether_there_are_workers_outside_is_what_the_options_say(given: Any, is_on: bool) -> None:
    said = {**(given or {}), "EXTERNAL_WORKERS": True} if is_on else given
    with override_settings(DECLARATIVE_CRON=said):
        assert conf.external_workers() is conf.lenient_options().EXTERNAL_WORKERS is is_on
