"""Show scheduled tasks and act on them.

Exit codes: 0 success; 1 a negative result, such as a failed run; 2 wrong use, such as
an unknown name, invalid settings or an unmigrated database.
"""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    DjangoHelpFormatter,
)
from django.db import Error as DatabaseError

from ...core.declarations.problems import UnresolvableError
from ...core.declarations.values import nearest
from ...exceptions import safe
from ...runtime.clock import Clock, system_clock
from ...runtime.runners import fork_server_client
from ...store import database
from ...store.database import AWAY, REFUSED, HeldError, why_unavailable
from ..cli.backfill import BACKFILL
from ..cli.cancel import CANCEL
from ..cli.health import HEALTH
from ..cli.history import HISTORY
from ..cli.import_ import IMPORT
from ..cli.list import LIST
from ..cli.metrics import METRICS
from ..cli.next import NEXT
from ..cli.notify import NOTIFY
from ..cli.outbox import OUTBOX
from ..cli.plan import PLAN
from ..cli.prune import PRUNE
from ..cli.run import RUN
from ..cli.show import EXPLAIN, SHOW
from ..cli.simulate import SIMULATE
from ..cli.snapshot import SNAPSHOT
from ..cli.subcommand import Context, Subcommand, refuse_unstorable, wrong_use
from ..cli.task_actions import CLEAR_RETRY, PAUSE, RESUME, RETRY, SKIP
from ..cli.terminal import Terminal
from ..cli.token import TOKEN
from ..cli.verify import VERIFY

_EVERYDAY = (LIST, SHOW, NEXT, HISTORY, RUN, PAUSE, RESUME, SKIP, RETRY, CANCEL, HEALTH, PLAN)
_ADVANCED = (
    *(EXPLAIN, CLEAR_RETRY, BACKFILL, SIMULATE, SNAPSHOT, PRUNE),
    *(OUTBOX, NOTIFY, METRICS, TOKEN, VERIFY, IMPORT),
)
SUBCOMMANDS = {each.name: each for each in (*_EVERYDAY, *_ADVANCED)}

_EXIT_CODES = "Exit codes: 0 fine, 1 the answer is bad (such as a failed run), 2 wrong use."


class _HelpFormatter(RawDescriptionHelpFormatter, DjangoHelpFormatter):
    """Django's formatter, which keeps the lines of the two groups of subcommands."""


def _groups() -> str:
    lines = []
    for title, group in (("everyday subcommands", _EVERYDAY), ("advanced", _ADVANCED)):
        lines.append(f"{title}:")
        lines += [f"  {each.name:<12} {each.help}" for each in group]
        lines.append("")
    lines.append("`cron SUBCOMMAND --help` shows its options.")
    return "\n".join(lines)


class Command(BaseCommand):
    """Run one of the subcommands."""

    help = f"Look at scheduled tasks and act on them.\n{_EXIT_CODES}\n\n{_groups()}"
    missing_args_message = f"name a subcommand\n\n{_groups()}"
    # Mistakes in the settings must not keep anyone from pausing a task.
    requires_system_checks = []
    clock: Clock = system_clock

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser, with the subcommands in two groups in its help."""
        return super().create_parser(
            prog_name, subcommand, formatter_class=_HelpFormatter, **kwargs
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the subcommands and their options."""
        # Without a help text each, because the description has them in groups.
        subparsers = parser.add_subparsers(
            dest="subcommand", metavar="SUBCOMMAND", required=True, help="one of those above"
        )
        for each in SUBCOMMANDS.values():
            subparser = subparsers.add_parser(each.name, description=each.help)
            refuse_unstorable(subparser)
            each.arguments(subparser)
            _add_common(subparser)

    def run_from_argv(self, argv: list[str]) -> None:
        """Suggest a subcommand for a misspelt one, where the parser would list all."""
        word = "".join(argv[2:3])
        if word and word not in SUBCOMMANDS and not word.startswith("-"):
            near = nearest(word, SUBCOMMANDS)
            hint = f"did you mean `{near}`?" if near else "`cron --help` lists them"
            self._called_from_command_line = True
            self.create_parser(argv[0], argv[1]).error(f"no subcommand is called {word!r}: {hint}")
        super().run_from_argv(argv)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Respect the variable ``NO_COLOR``."""
        if os.environ.get("NO_COLOR") and not options["force_color"]:
            options["no_color"] = True
        return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the subcommand; the exit code is the answer."""
        terminal = Terminal(self.stdout, self.stderr, self.style, force=options["force_color"])
        is_alone = getattr(self, "_called_from_command_line", False)
        if is_alone:
            fork_server_client.is_command()
        context = Context(terminal, self.clock, is_alone)
        try:
            self._answer(SUBCOMMANDS[options["subcommand"]], context, options)
        except CommandError as error:
            # Messages may repeat names and texts that hold control characters.
            if options.get("format") == "json" and not terminal.has_data:
                terminal.data({"error": safe(str(error), keep="\n")})
            error.args = (terminal.worded(str(error)),)
            raise

    def _answer(self, subcommand: Subcommand, context: Context, options: dict[str, Any]) -> None:
        try:
            subcommand.answer(context, options)
        except ImproperlyConfigured as error:
            raise wrong_use(str(error)) from error
        except UnresolvableError as error:
            raise wrong_use(f"{error.reason}. {error.hint}".strip()) from error
        except HeldError as error:
            raise CommandError(f"Nothing was changed: {error}.") from error
        except DatabaseError as error:
            why = why_unavailable(database.alias())
            code = 1 if why in (None, AWAY) else 2
            raise CommandError(why or REFUSED, returncode=code) from error


def _add_common(parser: ArgumentParser) -> None:
    """Accept the options of every Django command behind the subcommand too."""
    group = parser.add_argument_group("options of every command")
    group.add_argument(
        "-v", "--verbosity", type=int, choices=[0, 1, 2, 3], default=SUPPRESS, help=SUPPRESS
    )
    for flag, text in (
        ("--no-color", "no colours, even on a terminal, as with the variable NO_COLOR"),
        ("--force-color", "colours in a pipe too"),
        ("--traceback", "show where an error comes from"),
    ):
        group.add_argument(flag, action="store_true", default=SUPPRESS, help=text)
    for option in ("--settings", "--pythonpath"):
        group.add_argument(option, default=SUPPRESS, help=SUPPRESS)
