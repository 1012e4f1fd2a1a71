"""The dashboard and the alert rules use existing metrics and labels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from django_declarative_cron.core.status import Status
from django_declarative_cron.monitoring.metric_defs import FILES, METRICS, PREFIX, Metric, text_of

_SERIES = re.compile(PREFIX + r"(\w+)(?:\{([^}]*)\})?")
# Labels that Prometheus adds, and those of histograms.
_ADDED = {"job", "instance", "le"}


def expressions() -> Iterator[str]:
    for group in yaml.safe_load(text_of("alerts"))["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]
    for panel in json.loads(text_of("dashboard"))["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def metric_of(name: str) -> Metric | None:
    for each in METRICS:
        plain = each.exposed.removeprefix(PREFIX)
        if name == plain or (
            each.kind == "histogram"
            and name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") == plain
        ):
            return each
    return None


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_every_expression_uses_existing_metrics_and_labels(expression: str) -> None:
    assert expression.count("(") == expression.count(")")
    found = list(_SERIES.finditer(expression))
    assert found
    labels: set[str] = set()
    for series in found:
        metric = metric_of(series[1])
        assert metric is not None, series[1]
        labels |= set(metric.labels)
        for matcher in filter(None, (series[2] or "").split(",")):
            label = re.split(r"[=!~]", matcher)[0]
            assert label in {*metric.labels, *_ADDED}, label
            if label == "status":
                assert matcher.split('"')[1] in set(Status)
    for by in re.findall(r"by \(([^)]*)\)", expression):
        assert {each.strip() for each in by.split(",")} <= labels | _ADDED


def test_a_metric_that_is_not_there_would_be_found() -> None:
    assert metric_of("has_leader") is not None
    assert metric_of("run_lateness_seconds_bucket") is not None
    assert metric_of("has_leader_bucket") is None
    assert metric_of("leaders") is None


def test_alerts_have_a_severity_and_a_description() -> None:
    (group,) = yaml.safe_load(text_of("alerts"))["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names)
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "description"}
        variables = re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))
        assert all(f"{each}" in rule["expr"] for each in variables)


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    dashboard: dict[str, Any] = json.loads(text_of("dashboard"))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_every_file_is_part_of_the_package() -> None:
    for name in FILES:
        assert text_of(name)
