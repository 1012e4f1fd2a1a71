"""Entries and registrations that are accepted, to be changed by a test, and the error of others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import Declaration
from django_declarative_cron.core.declarations.problems import Problem
from django_declarative_cron.exceptions import DeclarativeCronError

from ..callables import jobs

PATH = "tests.callables.jobs.send_mail"
FIVE = timedelta(minutes=5)


def entry(**keys: Any) -> dict[str, Any]:
    """Return a dict entry; a key that is ``...`` is left out."""
    given = {"name": "a", "cron": "0 * * * *", "callback": PATH, **keys}
    return {key: value for key, value in given.items() if value is not Ellipsis}


def item(
    name: Any = "a", cron: Any = "0 * * * *", callback: Any = jobs.send_mail, delay: Any = FIVE
) -> tuple[Any, ...]:
    """Return a registration of four parts."""
    return (name, cron, callback, delay)


def declaration_of(given: object) -> Declaration:
    """Return the declaration of an entry or a registration."""
    (declaration,) = conf.declarations([given])
    return declaration


def refused(registrations: object) -> DeclarativeCronError:
    """Return the first error of entries and registrations."""
    with pytest.raises(DeclarativeCronError) as caught:
        conf.declarations(registrations)
    return caught.value


def problems_of(given: object) -> list[Problem]:
    """Return the errors, without warnings, of an entry or a registration."""
    return [each for each in conf.problems([given]) if each.check.level == "E"]
