"""``cron metrics``: metrics of the database, a Grafana dashboard, Prometheus alert rules."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from ...monitoring.metric_defs import FILES, text_of
from ...monitoring.metrics import MetricsUnavailableError, exposition, read_counts
from .subcommand import Context, Options, Subcommand, wrong_use


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--file",
        choices=sorted(FILES),
        help="print the dashboard for Grafana, or the alert rules for Prometheus, instead",
    )
    parser.add_argument(
        "--format",
        choices=["text", "json"],
        default="text",
        help="the format of Prometheus (the default), or JSON",
    )


def _answer(context: Context, options: Options) -> None:
    is_json = options["format"] == "json"
    if options["file"]:
        if is_json:
            raise wrong_use("--file has a format of its own.")
        context.terminal.verbatim(text_of(options["file"]))
        return
    try:
        body, _ = exposition(read_counts(context.clock))
    except MetricsUnavailableError as error:
        raise wrong_use(str(error)) from error
    if is_json:
        context.terminal.data([_record(each) for each in _families(body.decode())])
    else:
        context.terminal.verbatim(body.decode())


def _families(text: str) -> Iterable[Any]:
    from prometheus_client.parser import text_string_to_metric_families

    return text_string_to_metric_families(text)


def _record(family: Any) -> dict[str, Any]:
    return {
        "name": family.name,
        "kind": family.type,
        "help": family.documentation,
        "samples": [{"labels": each.labels, "value": each.value} for each in family.samples],
    }


METRICS = Subcommand(
    "metrics", "print metrics for Prometheus, a dashboard or alert rules", _arguments, _answer
)
