"""Look at scheduled tasks and act on them.

Exit codes: 0 fine; 1 the answer is bad, such as a failed run; 2 wrong use, such as
an unknown name, refused settings or an unmigrated database.
"""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError

from ...core.declarations.problems import UnresolvableError
from ...exceptions import safe
from ...runtime.clock import Clock, system_clock
from ...runtime.runners import fork_server_client
from ...store import database
from ...store.database import AWAY, REFUSED, HeldError, why_unavailable
from ..cli import (
    acts,
    backfilling,
    cancelling,
    delivering,
    explaining,
    forgetting,
    granting,
    importing,
    listing,
    measuring,
    notifying,
    past,
    planning,
    probing,
    running,
    showing,
    simulating,
    snapshotting,
    upcoming,
    verifying,
)
from ..cli.subcommand import Context, Subcommand
from ..cli.terminal import Terminal

SUBCOMMANDS = {
    each.name: each
    for each in (
        listing.LIST,
        showing.SHOW,
        upcoming.NEXT,
        explaining.EXPLAIN,
        past.HISTORY,
        planning.PLAN,
        running.RUN,
        backfilling.BACKFILL,
        cancelling.CANCEL,
        acts.PAUSE,
        acts.RESUME,
        acts.SKIP,
        acts.CLEAR_RETRY,
        probing.HEALTH,
        delivering.OUTBOX,
        notifying.NOTIFY,
        measuring.METRICS,
        simulating.SIMULATE,
        snapshotting.SNAPSHOT,
        forgetting.PRUNE,
        granting.TOKEN,
        verifying.VERIFY,
        importing.IMPORT,
    )
}


class Command(BaseCommand):
    """The command ``cron``: a thin shell around its subcommands."""

    help = (
        "Look at scheduled tasks and act on them. "
        "Exit codes: 0 fine, 1 the answer is bad (such as a failed run), 2 wrong use."
    )
    # Mistakes in the settings must not keep anyone from pausing a task.
    requires_system_checks = []
    clock: Clock = system_clock

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the subcommands and their options."""
        subparsers = parser.add_subparsers(
            dest="subcommand", metavar="SUBCOMMAND", required=True, title="subcommands"
        )
        for each in SUBCOMMANDS.values():
            subparser = subparsers.add_parser(each.name, help=each.help, description=each.help)
            each.arguments(subparser)
            _add_common(subparser)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Obey ``NO_COLOR`` too."""
        if os.environ.get("NO_COLOR") and not options["force_color"]:
            options["no_color"] = True
        return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what was asked for; the exit code is the answer."""
        terminal = Terminal(self.stdout, self.stderr, self.style, force=options["force_color"])
        is_alone = getattr(self, "_called_from_command_line", False)
        if is_alone:
            fork_server_client.is_command()
        context = Context(terminal, self.clock, is_alone)
        try:
            self._answer(SUBCOMMANDS[options["subcommand"]], context, options)
        except CommandError as error:
            # Messages repeat names, expressions and texts of other programs.
            error.args = (safe(str(error), keep="\n"),)
            if options.get("format") == "json" and not terminal.has_data:
                terminal.data({"error": str(error)})
            raise

    def _answer(self, asked: Subcommand, context: Context, options: dict[str, Any]) -> None:
        try:
            asked.answer(context, options)
        except ImproperlyConfigured as error:
            raise CommandError(str(error), returncode=2) from error
        except UnresolvableError as error:
            raise CommandError(f"{error.reason}. {error.hint}".strip(), returncode=2) from error
        except HeldError as error:
            raise CommandError(f"Nothing was changed: {error}.", returncode=1) from error
        except DatabaseError as error:
            why = why_unavailable(database.alias())
            code = 1 if why in (None, AWAY) else 2
            raise CommandError(why or REFUSED, returncode=code) from error


def _add_common(parser: ArgumentParser) -> None:
    """Let the options that Django gives to every command stand behind the subcommand too."""
    group = parser.add_argument_group("options of every command")
    group.add_argument(
        "-v", "--verbosity", type=int, choices=[0, 1, 2, 3], default=SUPPRESS, help=SUPPRESS
    )
    for flag, text in (
        ("--no-color", "no colours, on a terminal either; so does the variable NO_COLOR"),
        ("--force-color", "colours in a pipe too"),
        ("--traceback", "show where an error comes from"),
    ):
        group.add_argument(flag, action="store_true", default=SUPPRESS, help=text)
    for option in ("--settings", "--pythonpath"):
        group.add_argument(option, default=SUPPRESS, help=SUPPRESS)
