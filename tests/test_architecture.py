"""The package keeps the shape of its design, and every rule is able to say no."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from django.apps import apps
from django.utils.module_loading import import_string

import django_declarative_cron

from .architecture import ALLOWED, LONGEST_FILE, LONGEST_FUNCTION, RULES, Source, broken, may_import
from .conftest import CHECKOUT

ROOT = Path(django_declarative_cron.__file__).parent
SOURCES = [
    Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.rglob("*.py"))
]


@pytest.mark.requirement("001 Time Provider and Granularity/1", "001 Deterministic Behavior/1")
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_the_package_keeps_its_shape(source: Source) -> None:
    assert broken(source) == []


def test_the_whole_package_was_read() -> None:
    assert {"cron", "core", "store", "runtime", "admin", "management"} <= {
        source.part for source in SOURCES
    }


REFUSED = [
    # imports
    ("imports", "cron/a.py", "from django_declarative_cron.core import b"),
    ("imports", "cron/a.py", "from ..core.state import apply"),
    ("imports", "cron/a.py", "from .. import core"),
    ("imports", "cron/a.py", "def f():\n    from ..core import b"),
    ("imports", "core/a.py", "import django_declarative_cron.store.guard"),
    ("imports", "core/a.py", "from ..models import TaskRun"),
    ("imports", "core/deep/a.py", "from ...store import guard"),
    ("imports", "core/a.py", "from ..theory import checker"),
    ("imports", "conf.py", "from .models import TaskRun"),
    ("imports", "models.py", "from . import store"),
    ("imports", "callables.py", "from .conf import options"),
    ("imports", "signals.py", "from .conf import options"),
    ("imports", "store/a.py", "from ..runtime.clock import Clock"),
    ("imports", "runtime/a.py", "from ..admin import pages"),
    ("imports", "admin/a.py", "from ..http import urls"),
    ("imports", "runtime/a.py", "from ..monitoring import metrics"),
    ("imports", "monitoring/a.py", "from ..http import authentication"),
    ("imports", "management/commands/a.py", "from ...admin import pages"),
    ("imports", "theory/a.py", "from ..store import guard"),
    ("imports", "exceptions.py", "from .cron import parse"),
    ("imports", "checks.py", "from .store import guard"),
    ("imports", "checks.py", "from .runtime import scheduler"),
    ("imports", "apps.py", "from .runtime import scheduler"),
    ("imports", "store/a.py", "import_module('django_declarative_cron.runtime.clock')"),
    # purity
    ("purity", "cron/a.py", "from django.utils import timezone"),
    ("purity", "core/a.py", "import time"),
    ("purity", "theory/a.py", "import threading"),
    ("purity", "exceptions.py", "import os.path"),
    ("purity", "core/a.py", "open('state.json')"),
    ("purity", "core/a.py", "from urllib import request"),
    # clock
    ("clock", "store/a.py", "from datetime import datetime\ndatetime.now()"),
    ("clock", "core/a.py", "import datetime as dt\ndt.datetime.now(dt.UTC)"),
    ("clock", "admin/a.py", "from django.utils import timezone as tz\ntz.now()"),
    ("clock", "runtime/a.py", "from django.utils.timezone import now\nnow()"),
    ("clock", "models.py", "from django.utils import timezone\nF(default=timezone.now)"),
    ("clock", "models.py", "models.DateTimeField(auto_now=True)"),
    ("clock", "runtime/a.py", "import time\ntime.time()"),
    ("clock", "runtime/a.py", "from django.db.models.functions import Now\nNow()"),
    ("clock", "store/a.py", "from time import monotonic\nmonotonic()"),
    ("clock", "management/a.py", "import time\ntime.sleep(1)"),
    # settings
    ("settings", "runtime/a.py", "from django.conf import settings"),
    ("settings", "admin/a.py", "import django.conf"),
    ("settings", "checks.py", "from django import conf"),
    # writes
    ("writes", "admin/a.py", "task.save()"),
    ("writes", "admin/a.py", "TaskRun.objects.filter(a=1).delete()"),
    ("writes", "runtime/a.py", "TaskRun.objects.create(a=1)"),
    ("writes", "runtime/a.py", "TaskRun.objects.using('b').filter(a=1).update(a=2)"),
    ("writes", "admin/a.py", "def pause(self, request, queryset):\n    queryset.update(a=1)"),
    ("writes", "admin/a.py", "def f(rows: QuerySet[Task]):\n    rows.filter(a=1).update(a=1)"),
    ("writes", "http/a.py", "rows = Task.objects.all()\nrows.update(a=1)"),
    ("writes", "http/a.py", "self.get_queryset().update(a=1)"),
    ("writes", "testing.py", "TaskRun.objects.bulk_create([])"),
    ("writes", "runtime/a.py", "TaskRun.objects.get_or_create(a=1)"),
    ("writes", "runtime/a.py", "async def f():\n    await task.asave()"),
    ("writes", "runtime/a.py", "Task.objects.select_for_update()"),
    ("writes", "runtime/a.py", "connection.cursor()"),
    # log
    ("log", "runtime/a.py", "logger.exception('A pass failed')"),
    ("log", "store/a.py", "import logging\nlogging.info('Claimed')"),
    ("log", "admin/a.py", "self._logger.log(10, 'Shown')"),
    # sizes
    ("sizes", "core/a.py", "a = 1\n" * (LONGEST_FILE + 1)),
    ("sizes", "core/a.py", "def f():\n" + "    a = 1\n" * LONGEST_FUNCTION),
    ("sizes", "core/a.py", "async def f():\n" + "    a = 1\n" * LONGEST_FUNCTION),
    # policies
    ("policies", "core/a.py", "policy == 'enqueue'"),
    ("policies", "store/a.py", "declaration['overlap_policy'] in ('skip', 'coalesce')"),
    ("policies", "core/a.py", "match policy:\n    case 'cancel_previous': pass"),
    # unsafe
    ("unsafe", "store/a.py", "import pickle"),
    ("unsafe", "runtime/a.py", "from pickle import loads"),
    ("unsafe", "conf.py", "eval('1')"),
    ("unsafe", "conf.py", "exec('a = 1')"),
]


@pytest.mark.parametrize(("rule", "name", "text"), REFUSED)
def test_a_rule_can_say_no(rule: str, name: str, text: str) -> None:
    assert [found.split()[0] for found in broken(Source(name, text))] == [rule]


ACCEPTED = [
    ("core/a.py", "from ..cron.expression import CronExpression\nfrom ..exceptions import E"),
    ("theory/a.py", "from ..core import events\nfrom ..cron import parse"),
    ("models.py", "from .fields import InstantField"),
    ("fields.py", "from django.conf import settings"),
    ("conf.py", "from django.conf import settings\nfrom .core.declaration import Declaration"),
    ("apps.py", "def ready(self):\n    from . import checks"),
    ("checks.py", "from . import conf\nfrom .runtime.clock import system_clock"),
    ("management/commands/a.py", "from ... import __version__\nfrom ...runtime.clock import Clock"),
    ("testing.py", "from .runtime.scheduler import Scheduler\nfrom .admin import pages"),
    ("runtime/clock.py", "import time\nfrom datetime import UTC, datetime\ndatetime.now(UTC)"),
    ("runtime/a.py", "import time\ntime.monotonic()\nself.clock.now()"),
    ("core/a.py", "from datetime import time, timezone\ntime(1, 2)\nstate.update(a=1)"),
    ("runtime/a.py", "options = {}\noptions.update(a=1)\nFactory.create()"),
    ("store/a.py", "TaskRun.objects.filter(a=1).update(a=2)"),
    ("signals.py", "import logging\nlogger.info('Started')"),
    ("management/a.py", "import logging\nlogging.getLogger('a').addHandler(handler)"),
    ("conf.py", "from .callables import resolve"),
    ("core/a.py", "def f():\n" + "    a = 1\n" * (LONGEST_FUNCTION - 1)),
    ("migrations/0001_initial.py", "a = 1\n" * (LONGEST_FILE + 1)),
    ("core/a.py", "from urllib.parse import urlsplit"),
    ("importers/a.py", "entry['overlap_policy'] = 'enqueue'\noption('coalesce', True)"),
    ("core/a.py", "'Never eval(text) nor pickle it.'"),
]


@pytest.mark.parametrize(("name", "text"), ACCEPTED)
def test_a_rule_says_no_only_where_it_must(name: str, text: str) -> None:
    assert broken(Source(name, text)) == []


def test_every_rule_was_seen_to_say_no() -> None:
    assert {rule.__name__ for rule in RULES} == {rule for rule, _, _ in REFUSED}


def test_a_part_without_a_place_in_the_layout_is_refused() -> None:
    with pytest.raises(LookupError, match="helpers has no place"):
        may_import("helpers")


@pytest.mark.parametrize(("rule", "name"), ALLOWED)
def test_an_exception_names_a_rule_and_a_file_of_the_package(rule: str, name: str) -> None:
    assert rule in {known.__name__ for known in RULES}
    assert name in {source.name for source in SOURCES}


# --- docstrings: public names have them, and no other name needs one ---

REFERENCE = re.compile(r"^\.\. auto\w+:: (\S+)$(?:\n +:members:(.*))?", re.MULTILINE)
MODULES = [s.name for s in SOURCES if s.name.endswith("__init__.py") and s.part != "migrations"]
COMMANDS = [s.name for s in SOURCES if re.fullmatch(r"management/commands/[a-z]+\.py", s.name)]


def _module(name: str) -> ModuleType:
    path = Path("django_declarative_cron", name).with_suffix("")
    return import_module(".".join(path.parts).removesuffix(".__init__"))


def _members(owner: object, listed: str) -> Iterator[tuple[str, object]]:
    """Yield the members of a class that the reference shows: those listed, or all public ones."""
    names = re.findall(r"\w+", listed)
    for name, member in vars(owner).items():
        is_shown = name in names if names else not name.startswith("_")
        if is_shown and (inspect.isroutine(member) or isinstance(member, property)):
            yield name, member


def _public() -> Iterator[tuple[str, object]]:
    page = (CHECKOUT / "docs" / "reference.md").read_text(encoding="utf-8")
    for entry in REFERENCE.finditer(page):
        found = import_string(entry[1])
        yield entry[1], found
        if entry[2] is not None:
            yield from ((f"{entry[1]}.{name}", each) for name, each in _members(found, entry[2]))
    for model in apps.get_app_config("django_declarative_cron").get_models():
        yield f"models.{model.__name__}", model
    yield from ((name, _module(name).Command) for name in COMMANDS)
    yield from ((name, _module(name)) for name in MODULES)


PUBLIC = dict(_public())


def _is_documented(each: object) -> bool:
    """Return whether a docstring was written: dataclasses and models have made ones."""
    text = each.__doc__ or ""
    return bool(text) and not text.startswith(f"{getattr(each, '__name__', '')}(")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_a_docstring(name: str) -> None:
    assert _is_documented(PUBLIC[name])


def test_a_docstring_that_is_missing_would_be_found() -> None:
    @dataclass
    class Made:
        value: int

    assert Made.__doc__
    assert not _is_documented(Made)
    assert {"django_declarative_cron.Scheduler.stop", "models.TaskRun"} <= set(PUBLIC)
    assert {"management/commands/cron.py", "store/__init__.py"} <= set(PUBLIC)


def test_references_to_the_semantics_name_a_heading() -> None:
    page = (CHECKOUT / "docs" / "semantics.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^#+ (.+)$", page, re.MULTILINE))
    package = Path(django_declarative_cron.__file__).parent
    sources = (" ".join(path.read_text(encoding="utf-8").split()) for path in package.rglob("*.py"))
    text = "\n".join(sources)
    named = set(re.findall(r'docs/semantics\.md, "([^"]+)"', text))
    assert named, "no reference was found"
    assert named <= headings
    assert re.findall(r"docs/semantics\.md(?!, \")|semantics \d", text) == []
