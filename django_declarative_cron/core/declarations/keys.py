"""The keys of a dict entry: types, defaults, and the texts that messages and the docs show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

from ..overlap import DEFAULT_POLICY, POLICIES


class Key(NamedTuple):
    """A key of a dict entry.

    Args:
        types: accepted types.
        words: the types in messages.
        default: the value of an entry without the key, ``...`` if there is none.
        help: the text in the docs, in Markdown.
        choices: the accepted values, if there are only a few.
    """

    types: tuple[Any, ...]
    words: str
    default: Any
    help: str
    choices: tuple[str, ...] = ()


_DURATION: Final = (timedelta, int, float, str)
_TEXT: Final = ((str,), "a text")
_FLAG: Final = ((bool,), "True or False")
_POLICIES: Final = ", ".join(f'`"{policy}"`' for policy in POLICIES)

KEYS: Final[Mapping[str, Key]] = {
    "name": Key(
        *_TEXT,
        ...,
        "lower-case letters, digits, `-` and `.`, starting with a letter or digit; at most 255",
    ),
    "cron": Key(*_TEXT, ..., "a [cron expression](#cron-expressions)"),
    "timezone": Key(
        *_TEXT, "UTC", "an IANA name: `UTC`, or one with a slash such as `Europe/Berlin`"
    ),
    "callback": Key(
        (str, Callable),
        "a dotted path or a callable",
        ...,
        "the function to call: a dotted path, or a module-level function",
    ),
    "type": Key(
        (str,),
        "a dotted path",
        ...,
        "a [registered type](http.md#registered-types), or a dotted path",
    ),
    "command": Key(
        (str, list, tuple),
        "a list of words",
        ...,
        'a management command as a list of words: `["clearsessions"]`',
    ),
    "args": Key(
        (list, tuple),
        "a list",
        (),
        "positional arguments of JSON types; each run gets a copy; not with `command`",
    ),
    "enabled": Key(*_FLAG, True, "`False` has the effect of a pause"),
    "description": Key((str, type(None)), "a text", "", "a text for the admin"),
    "tags": Key(
        (list, tuple),
        "a list of words",
        (),
        "a list of words to filter tasks by: in the admin, with `--tag` and `?tag=`",
    ),
    "overlap_policy": Key(
        *_TEXT,
        DEFAULT_POLICY,
        f"effect of an occurrence during a run of the task: {_POLICIES};"
        " see [Overlap policies](semantics.md#overlap-policies)",
        POLICIES,
    ),
    "retry_delay": Key(
        (timedelta,),
        "a timedelta",
        ...,
        'a fixed retry delay up to 36,500 days, in place of `options["retry"]`',
    ),
    "dialect": Key(*_TEXT, "ojs", 'syntax of `cron`: `"ojs"` or `"posix"`', ("posix", "ojs")),
    "gap": Key(
        *_TEXT,
        "skip",
        'local times that do not exist: `"skip"` them, or `"shift"` them to the end of the gap',
        ("skip", "shift"),
    ),
    "fold": Key(
        *_TEXT,
        "first",
        'local times that occur twice: run at the `"first"` or at `"both"`',
        ("first", "both"),
    ),
    "options": Key((dict,), "a dict", {}, "[options of each run](#options)"),
    "runner": Key(
        *_TEXT,
        "thread",
        '`"thread"`, `"process"` or `"django_tasks"`; see [Runners](runners.md). Time and resource'
        ' limits make `"process"` the default, and a Django `Task` makes it `"django_tasks"`',
        ("thread", "process", "django_tasks"),
    ),
    "atomic": Key(
        *_FLAG,
        False,
        "commit the work and the success of a run [in one transaction](runners.md#atomic-runs)",
    ),
    "monitor": Key(
        (bool, str, dict),
        "True, False, a URL or a dict",
        ...,
        "enables [external monitoring](monitoring.md#monitors): `True`, `False`, a URL or a dict",
    ),
    "spread": Key(
        _DURATION,
        "a timedelta or a number of seconds",
        0,
        "upper limit of the [deterministic jitter](operating.md#spread-tasks)",
    ),
    "catch_up_window": Key(
        (*_DURATION, type(None)),
        "None, or a timedelta or a number of seconds",
        None,
        "maximum age of an occurrence for [catch-up](operating.md#limit-catch-up); `0` disables it",
    ),
    "exclude_calendars": Key(
        (str, list, tuple),
        "the name of a calendar, or a list of such",
        (),
        "names of [calendars](operating.md#exclude-days) with days without occurrences",
    ),
    "pause_after_failures": Key(
        (int, type(None)),
        "a whole number",
        None,
        "number of consecutive failures that [pause the task](operating.md#pause-after-failures)",
    ),
}
DEFAULTS: Final = {name: key.default for name, key in KEYS.items() if key.default is not ...}
REQUIRED: Final = ("name", "cron")
WHAT_RUNS: Final = ("callback", "type", "command")
MANAGED: Final = ("last_run_at", "next_run_at", "run_count", "created_at")
"""Keys that only the scheduler sets (002)."""
