"""Commands of crontab lines: management commands where possible, else a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .calls import PRINTED, SHELL, Keys
from .result import Difference

_OPERATORS: Final = frozenset({"|", "||", "&", ";", "(", ")", "|&", ";;"})
_REDIRECTION: Final = re.compile(r"[0-9&]?>{1,2}\|?&?|<{1,3}&?")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON: Final = re.compile(r"(?:.*/)?(?:python[0-9.]*|pypy[0-9.]*)")
# Variables, patterns, braces, home directories, comments: quoted or not, a shell reads them right.
_NEEDS_SHELL: Final = re.compile(r"[$`*?{\[]|^#|(?:^|[=:])~")
_SUFFIXES: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_TIMEOUT: Final = re.compile(r"([0-9.]+)([smhd]?)")
# Words before a command that change nothing in what it does, with how many words follow each.
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


def command_keys(text: str) -> Keys:
    """Return the keys that run a command line."""
    line, _, fed = text.partition("\n")
    words = _words(line)
    found = None if fed or words is None else _Reading(words, line).management()
    if found is not None:
        return found
    # In a process of its own its output is kept, and a limit of time can end it.
    # Cron ends the last line of the input too.
    args = [line, fed.removesuffix("\n") + "\n"] if fed else [line]
    keys = {"callback": SHELL, "args": args, "runner": "process"}
    text = f"`{SHELL}` gives it to a shell in the environment of runscheduler; it fails by its exit"
    return keys, [Difference("callback", text)]


def _words(line: str) -> list[str] | None:
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        return list(lexer)
    except ValueError:
        return None


class _Reading:
    """Reads the words of a command line, as long as none of them needs a shell."""

    def __init__(self, words: list[str], line: str) -> None:
        self._words, self._line = words, line
        self._differences: list[Difference] = []
        self._options: dict[str, Any] = {}
        self._skips = False

    def management(self) -> Keys | None:
        """Return the management command that the words run, ``None`` where they run another."""
        self._leave_directory()
        rest = self._without_redirections(self._words)
        if rest is None or any(map(_NEEDS_SHELL.search, rest)):
            return None
        rest = self._without_wrappers(rest)
        command, differences = _after_manage(rest)
        if not command:
            return None
        self._differences += differences
        keys: dict[str, Any] = {"command": command}
        if self._skips:
            keys["overlap_policy"] = "skip"
        if self._options:
            keys["options"] = self._options
        return keys, self._differences

    def _leave_directory(self) -> None:
        words = self._words
        while len(words) > 3 and words[0] in ("cd", "source", ".") and words[2] == "&&":
            what = "directory" if words[0] == "cd" else "environment"
            text = f"ran after `{words[0]} {words[1]}`; it has the {what} of runscheduler now"
            self._differences.append(Difference("environment", text))
            words = words[3:]
        self._words = words

    def _without_redirections(self, words: list[str]) -> list[str] | None:
        found: list[str] = []
        targets = []
        position = 0
        while position < len(words):
            word = words[position]
            following = words[position + 1] if position + 1 < len(words) else ""
            is_stream = word.isdigit() and f"{word}{following}" in self._line
            if is_stream and _REDIRECTION.fullmatch(following):
                position += 1
                word = following
            if _REDIRECTION.fullmatch(word):
                if word.startswith("<"):
                    return None
                targets += words[position + 1 : position + 2]
                position += 2
                continue
            if word == "&&" or word in _OPERATORS:
                return None
            found.append(word)
            position += 1
        files = [each for each in targets if not each.isdigit()]
        if files:
            text = f"wrote into {', '.join(files)}; {PRINTED}"
            self._differences.append(Difference("output", text))
        return found

    def _without_wrappers(self, words: list[str]) -> list[str]:
        while words:
            head = words[0].rpartition("/")[2]
            if _ASSIGNMENT.match(words[0]) or head == "env":
                if head != "env":
                    text = f"`{words[0]}` was set for it alone; set it for runscheduler"
                    self._differences.append(Difference("environment", text))
                words = words[1:]
            elif head == "flock":
                self._skips = True
                text = f"`flock` kept its runs apart; `overlap_policy` does ({' '.join(words[:3])})"
                self._differences.append(Difference("overlap", text))
                words = _behind_options(words)[1:]
            elif head == "timeout" and (limit := _limit(_behind_options(words)[:1])):
                self._options = {"timeout": limit}
                words = _behind_options(words)[1:]
            elif head in ("nice", "ionice"):
                text = f"`{head}` lowered its priority; runs have the one of runscheduler"
                self._differences.append(Difference("environment", text))
                words = _behind_options(words)
            elif head in _RUNNERS and tuple(words[1 : 1 + len(_RUNNERS[head])]) == tuple(
                _RUNNERS[head]
            ):
                length = 1 + len(_RUNNERS[head])
                text = f"ran by `{' '.join(words[:length])}`; it runs in runscheduler now"
                self._differences.append(Difference("environment", text))
                words = words[length:]
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


def _after_manage(words: list[str]) -> tuple[list[str], list[Difference]]:
    """Return the words of a management command, and the differences of its process."""
    options: list[str] = []
    if words and _PYTHON.fullmatch(words[0]):
        if words[0].startswith("/"):
            options.append(words[0])
        words = words[1:]
        while words and words[0] in ("-u", "-W", "-B", "-E", "-O"):
            width = 2 if words[0] == "-W" else 1
            options += words[:width] if words[0] != "-u" else []
            words = words[width:]
        if words[:2] == ["-m", "django"]:
            return _own(words[2:], options)
    head = words[0].rpartition("/")[2] if words else ""
    if head in ("manage.py", "manage", "django-admin", "django-admin.py"):
        if words[0].startswith("/"):
            options.append(words[0])
        return _own(words[1:], options)
    return [], []


def _own(words: list[str], options: list[str]) -> tuple[list[str], list[Difference]]:
    found: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word in ("--settings", "--pythonpath"):
            options.append(" ".join(words[position : position + 2]))
            position += 1
        elif word.startswith(("--settings=", "--pythonpath=")):
            options.append(word)
        else:
            found.append(word)
        position += 1
    text = "ran with `{}`; it has the project, the Python and the settings of runscheduler now"
    return found, [Difference("environment", text.format(each)) for each in options]
