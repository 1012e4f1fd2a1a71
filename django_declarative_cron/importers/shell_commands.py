"""Commands of crontab lines: management commands where possible, else a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from .calls import PRINTED, SHELL
from .result import ImportedTask

SH: Final = "/bin/sh"
_OPERATORS: Final = frozenset({"|", "||", "&", "&&", ";", "(", ")", "|&", ";;"})
_REDIRECTION: Final = re.compile(r"[0-9&]?>{1,2}\|?&?|<{1,3}&?")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON: Final = re.compile(r"(?:.*/)?(?:python[0-9.]*|pypy[0-9.]*)")
# Variables, patterns, braces, home directories, comments: quoted or not, a shell reads them right.
_NEEDS_SHELL: Final = re.compile(r"[$`*?{\[]|^#|(?:^|[=:])~")
_MANAGE: Final = ("manage.py", "manage", "django-admin", "django-admin.py")
_SUFFIXES: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_TIMEOUT: Final = re.compile(r"([0-9.]+)([smhd]?)")
# Words before a command that change nothing in what it does, with the words that follow each.
_RUNNERS: Final[Mapping[str, Sequence[str]]] = {
    "poetry": ("run",),
    "pipenv": ("run",),
    "uv": ("run",),
    "exec": (),
    "nohup": (),
    "chronic": (),
    "time": (),
}
# Options of these whose value is a word of its own.
_WITH_VALUES: Final[Mapping[str, Sequence[str]]] = {
    "timeout": ("-k", "-s"),
    "flock": ("-w", "-E"),
    "nice": ("-n",),
    "ionice": ("-c", "-n", "-p"),
}


def add_command(task: ImportedTask, text: str, shell: str = SH) -> None:
    """Add the keys that run a command line, and the differences of its process."""
    line, _, fed = text.partition("\n")
    found = ImportedTask(task.was)
    command = [] if fed else _management_command(found, line)
    if command:
        task.entry |= {"command": command, **found.entry}
        task.differences += found.differences
        return
    named = line if shell == SH else f"{shell} -c {shlex.quote(line)}"
    # Cron ends the last line of the input too.
    args = [named, fed.removesuffix("\n") + "\n"] if fed else [named]
    # In a process of its own its output is kept, and a limit of time can end it.
    task.entry |= {"callback": SHELL, "args": args, "runner": "process"}
    text = f"`{SHELL}` gives it to a shell in the environment of runscheduler; it fails by its exit"
    task.differ("callback", text)
    if shell != SH:
        task.differ("callback", f"`{shell}` runs it, because SHELL named it")


def _management_command(task: ImportedTask, line: str) -> list[str]:
    """Return the words of the management command that a line runs, none if it needs a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = _without_redirections(task, _without_directory(task, list(lexer)), line)
    except ValueError:
        return []
    if any(word in _OPERATORS or _NEEDS_SHELL.search(word) for word in words):
        return []
    return _after_manage(task, _without_wrappers(task, words))


def _without_directory(task: ImportedTask, words: list[str]) -> list[str]:
    while len(words) > 3 and words[0] in ("cd", "source", ".") and words[2] == "&&":
        what = "directory" if words[0] == "cd" else "environment"
        text = f"ran after `{words[0]} {words[1]}`; it has the {what} of runscheduler now"
        task.differ("environment", text)
        words = words[3:]
    return words


def _without_redirections(task: ImportedTask, words: list[str], line: str) -> list[str]:
    """Return the words without redirected output.

    Raises:
        ValueError: its input is redirected.
    """
    found: list[str] = []
    files = []
    while words:
        is_stream = words[0].isdigit() and "".join(words[:2]) in line
        if is_stream and _REDIRECTION.fullmatch("".join(words[1:2])):
            words = words[1:]
        word, *words = words
        if not _REDIRECTION.fullmatch(word):
            found.append(word)
            continue
        if word.startswith("<"):
            raise ValueError(word)
        files += [each for each in words[:1] if not each.isdigit()]
        words = words[1:]
    if files:
        task.differ("output", f"wrote into {', '.join(files)}; {PRINTED}")
    return found


def _without_wrappers(task: ImportedTask, words: list[str]) -> list[str]:
    while words:
        head = words[0].rpartition("/")[2]
        runner = [head, *_RUNNERS.get(head, ())]
        if _ASSIGNMENT.match(words[0]):
            text = f"`{words[0]}` was set for it alone; set it for runscheduler"
            task.differ("environment", text)
            words = words[1:]
        elif head == "env":
            words = words[1:]
        elif head == "flock":
            task.entry["overlap_policy"] = "skip"
            text = f"`flock` kept its runs apart; `overlap_policy` does ({' '.join(words[:3])})"
            task.differ("overlap", text)
            words = _behind_options(words)[1:]
        elif head == "timeout" and (limit := _limit(_behind_options(words)[:1])):
            task.entry["options"] = {"timeout": limit}
            words = _behind_options(words)[1:]
        elif head in ("nice", "ionice"):
            task.differ(
                "environment", f"`{head}` lowered its priority; runs have the one of runscheduler"
            )
            words = _behind_options(words)
        elif head in _RUNNERS and words[1 : len(runner)] == runner[1:]:
            text = f"ran by `{' '.join(words[: len(runner)])}`; it runs in runscheduler now"
            task.differ("environment", text)
            words = words[len(runner) :]
        else:
            break
    return words


def _behind_options(words: list[str]) -> list[str]:
    """Return what follows a command's name and its options."""
    with_values = _WITH_VALUES.get(words[0].rpartition("/")[2], ())
    words = words[1:]
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in with_values else words[1:]
    return words


def _limit(words: list[str]) -> float:
    match = _TIMEOUT.fullmatch(words[0]) if words else None
    seconds = 0 if match is None else float(match[1]) * _SUFFIXES[match[2]]
    return int(seconds) if seconds == int(seconds) else seconds


def _after_manage(task: ImportedTask, words: list[str]) -> list[str]:
    """Return the words of a management command without those of its process."""
    options: list[str] = []
    if words and _PYTHON.fullmatch(words[0]):
        options += [words[0]] if words[0].startswith("/") else []
        words = words[1:]
        while words and words[0] in ("-u", "-W", "-B", "-E", "-O"):
            width = 2 if words[0] == "-W" else 1
            options += words[:width] if words[0] != "-u" else []
            words = words[width:]
    if words[:2] == ["-m", "django"]:
        words = words[1:]
    elif words and words[0].rpartition("/")[2] in _MANAGE:
        options += [words[0]] if words[0].startswith("/") else []
    else:
        return []
    found = []
    words = words[1:]
    while words:
        width = 2 if words[0] in ("--settings", "--pythonpath") else 1
        if words[0].startswith(("--settings", "--pythonpath")):
            options.append(" ".join(words[:width]))
        else:
            found.append(words[0])
        words = words[width:]
    text = "ran with `{}`; it has the project, the Python and the settings of runscheduler now"
    for each in options:
        task.differ("environment", text.format(each))
    return found
