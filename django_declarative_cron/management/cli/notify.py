"""``cron notify``: test notifications, and send one if no scheduler is at work."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import CommandError

from ... import conf
from ...core.channels import Channel
from ...formatting import format_count
from ...monitoring.channels import send_test_message
from ...monitoring.dead_man_switch import check_and_notify
from ...store import database
from .subcommand import Context, Options, Subcommand, add_format, system_user, wrong_use


def _arguments(parser: ArgumentParser) -> None:
    act = parser.add_mutually_exclusive_group(required=True)
    act.add_argument(
        "--test", action="store_true", help="send a message that says that nothing is wrong"
    )
    act.add_argument(
        "--check",
        action="store_true",
        help="notify if no scheduler is running or tasks are overdue; for a cron job",
    )
    parser.add_argument("--channel", metavar="NAME", help="only this channel")
    parser.add_argument("--user", dest="author", metavar="NAME", help="who asks")
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    channels, is_json = _channels(options["channel"]), options["format"] == "json"
    if options["test"]:
        _test(context, channels, options["author"] or system_user(), is_json)
        return
    found = check_and_notify(database.alias(), channels, context.clock)
    if is_json:
        context.terminal.data(
            {
                "healthy": not found.notices,
                "notices": [notice.as_data() for notice in found.notices],
                "notified": found.notified,
                "errors": list(found.errors),
            }
        )
    else:
        for error in found.errors:
            context.terminal.warn(error)
    if found.notices:
        lines = " ".join(notice.line for notice in found.notices)
        told = format_count(found.notified, "channel")
        raise CommandError(f"Unhealthy: {lines} ({told} notified.)")
    if not is_json:
        context.terminal.say("Healthy: nothing to report.", "SUCCESS")


def _test(context: Context, channels: list[Channel], author: str, is_json: bool) -> None:
    now, deployment, errors = context.clock.now(), conf.options().DEPLOYMENT, dict[str, str]()
    for channel in channels:
        error = errors[channel.name] = send_test_message(channel, deployment, author, now)
        if not error and not is_json:
            context.terminal.say(f"{channel.name}: sent.", "SUCCESS")
    if is_json:
        context.terminal.data([{"channel": name, "error": error} for name, error in errors.items()])
    failed = [f"{name}: {error}." for name, error in errors.items() if error]
    if failed:
        raise CommandError("Not sent. " + " ".join(failed))


def _channels(name: str | None) -> list[Channel]:
    known = conf.options().NOTIFY
    if not known:
        raise wrong_use("No channel is declared: set NOTIFY in DECLARATIVE_CRON.")
    found = [each for each in known if name in (None, each.name)]
    if not found:
        names = ", ".join(repr(each.name) for each in known)
        raise wrong_use(f"There is no channel {name!r}; there are {names}.")
    return found


NOTIFY = Subcommand(
    "notify", "test notifications, and report that no scheduler is running", _arguments, _answer
)
