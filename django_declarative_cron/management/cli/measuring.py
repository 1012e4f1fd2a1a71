"""``cron metrics``: the metrics of the rows, and the files that make something of them."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import CommandError

from ...watch.files import FILES, text_of
from ...watch.metrics import MetricsUnavailableError, exposition, read_rows
from .subcommand import Context, Options, Subcommand


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--file",
        choices=sorted(FILES),
        help="print the dashboard for Grafana, or the alert rules for Prometheus, instead",
    )


def _answer(context: Context, options: Options) -> None:
    if options["file"]:
        context.terminal.as_it_is(text_of(options["file"]))
        return
    try:
        body, _ = exposition(read_rows())
    except MetricsUnavailableError as error:
        raise CommandError(str(error), returncode=2) from error
    context.terminal.as_it_is(body.decode())


METRICS = Subcommand(
    "metrics", "print metrics for Prometheus, a dashboard or alert rules", _arguments, _answer
)
