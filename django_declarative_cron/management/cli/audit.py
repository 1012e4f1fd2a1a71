"""The author and the note of an operator action."""

from __future__ import annotations

import getpass
import os
from argparse import ArgumentParser
from datetime import datetime

from django.core.management.base import CommandError

from ...core.declarations.values import flaw_of_text
from ...exceptions import safe
from ...store.operator_actions import Act
from .subcommand import Options


def add_author(parser: ArgumentParser) -> None:
    parser.add_argument("--note", default="", help="the reason, for the audit log")
    parser.add_argument(
        "--user", dest="author", metavar="NAME", help="who acts; the system user by default"
    )


def act(options: Options, at: datetime) -> Act:
    """Return the operator, the time and the reason of an action.

    Raises:
        CommandError: a text cannot be stored, with exit code 2.
    """
    author, note = options["author"], options["note"]
    if author is None:
        author = system_user()
    elif not author.strip():
        raise CommandError("--user is empty: write a name.", returncode=2)
    for option, flaw in (
        ("--user", flaw_of_text(author, one_line=True)),
        ("--note", flaw_of_text(note)),
    ):
        if flaw is not None:
            raise CommandError(f"{option} {flaw}.", returncode=2)
    return Act(author=author, at=at, note=note)


def system_user() -> str:
    """Return the user of this process, which in a container may have a number and no name."""
    try:
        return safe(getpass.getuser())
    except (ImportError, KeyError, OSError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
