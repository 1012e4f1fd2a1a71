"""The page on monitoring matches the code, and its recipe makes the JSON that it shows."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import re
import threading
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from django_declarative_cron import signals
from django_declarative_cron.core import channels, events, monitor
from django_declarative_cron.core.channels import Channel
from django_declarative_cron.core.declarations.declaration import Target
from django_declarative_cron.core.monitor import Monitoring
from django_declarative_cron.monitoring.metric_defs import text_of
from django_declarative_cron.runtime import tracing
from django_declarative_cron.runtime.work import Run, Work

from .pages import DOCS, code, codes

PAGE = DOCS["monitoring.md"]
AT = datetime(2024, 1, 1, 10, tzinfo=UTC)


def test_the_defaults_of_keys_are_those_of_the_code() -> None:
    common = PAGE.table("key of `MONITOR`", "default", "description")
    for row in common:
        default = getattr(Monitoring(), code(row["key of `MONITOR`"]))
        seconds = f"{default.total_seconds():g} s" if isinstance(default, timedelta) else ""
        assert row["default"] == (seconds or ("none" if default == "" else f"`{default}`"))
    own = PAGE.table("key of `monitor`", "description")
    assert [key for row in own for key in codes(row["key of `monitor`"])] == list(monitor._KEY)


def test_the_defaults_of_channels_are_those_of_the_code() -> None:
    rows = {
        code(row["key of `NOTIFY`"]): row
        for row in PAGE.table("key of `NOTIFY`", "default", "description")
    }
    assert set(codes(rows["kind"]["description"])) == set(channels.KINDS)
    for field in fields(Channel):
        if isinstance(field.default, timedelta):
            assert rows[field.name]["default"] == f"{field.default.total_seconds():g} s"


def test_the_table_of_attributes_is_that_of_the_code() -> None:
    rows = PAGE.table("attribute", "span", "description")
    said = {code(row["attribute"]) for row in rows if row["span"] == "run"}
    target = Target("shop.tasks.water", print)
    run = Run("water", AT, AT, 1, "due", "UTC", threading.Event())
    declared = SimpleNamespace(cron="0 4 * * *", timeout=None)
    found = set()
    for what in (target, replace(target, is_command=True)):
        work = Work(1, run, what, print, declaration=declared)  # type: ignore[arg-type]
        found |= set(tracing._attributes(work))
    assert said == found | {"error.type"}


@pytest.fixture
def lines() -> Any:
    """Give what is logged by the recipe of the page, as it is shown there."""
    (block,) = [each for each in PAGE.blocks if "pythonjsonlogger" in each.text]
    left: dict[str, Any] = {}
    exec(block.text, left)
    told = logging.config.DictConfigurator(left["LOGGING"])
    shown = left["LOGGING"]
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(told.configure_formatter(shown["formatters"]["json"]))
    handler.addFilter(told.configure_filter(shown["filters"]["run"]))
    logger = logging.getLogger("django_declarative_cron")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield lambda: [json.loads(line) for line in out.getvalue().splitlines()]
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_the_recipe_makes_the_object_that_is_shown(lines: Any) -> None:
    ended = datetime(2024, 1, 1, 10, 0, 2, 250_000, tzinfo=UTC)
    failed = events.TaskRunFailed(
        at=ended, task_name="water", duration=2.2, error="RuntimeError: the barrel is empty", run=42
    )
    signals.publish([failed])
    (made,) = lines()
    (block,) = [each for each in PAGE.blocks if each.marker == "json log"]
    shown = json.loads(block.text)
    for key in shown.keys() - {"time", "message"}:
        assert made[key] == shown[key], key
    assert made["message"].startswith("TaskRunFailed at=2024")
    assert "nextRetryAt" in made
    # An hour that is nobody's cannot be put in order with the logs of another machine.
    assert datetime.fromisoformat(made["time"]).utcoffset() == timedelta(0)


def test_every_event_is_one_json_object_with_its_name(lines: Any) -> None:
    at = datetime(2024, 1, 1, 10, tzinfo=UTC)
    signals.publish(
        [
            events.LeadershipGained(at=at, term=7, instance="x"),
            events.NotificationFailed(at=at, channel="mail", error='"\n', failures=2),
        ]
    )
    first, second = lines()
    assert (first["event"], first["term"], first["level"]) == ("LeadershipGained", 7, "INFO")
    assert (second["event"], second["channel"]) == ("NotificationFailed", "mail")
    assert second["error"] == '"\\n'


def test_the_pages_have_as_many_alert_rules_as_come_with_the_package() -> None:
    (group,) = yaml.safe_load(text_of("alerts"))["groups"]
    text = DOCS["going-live.md"].text
    assert f"SUCCESS: {len(group['rules'])} rules found" in text
    assert set(re.findall(r"`(Cron\w+)[`{]", text)) <= {rule["alert"] for rule in group["rules"]}
