"""Lines of crontabs: each means what it meant, or is listed with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from django_declarative_cron.importers import crontab, django_q
from django_declarative_cron.importers.calls import SHELL
from django_declarative_cron.importers.result import ImportedTask, UntranslatableError

ANACRON = "test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron."


def read(text: str, *, with_users: bool = False) -> list[ImportedTask]:
    return crontab.convert(text, "UTC", with_users=with_users)[0]


def one(text: str, *, with_users: bool = False) -> ImportedTask:
    (task,) = read(text, with_users=with_users)
    return task


def entry_of(text: str, *, with_users: bool = False) -> dict[str, Any]:
    task = one(text, with_users=with_users)
    assert task.entry, task
    return task.entry


def refusal_of(text: str) -> str:
    task = one(text)
    assert not task.entry
    return task.differences[-1].text


def test_the_crontab_of_debian_runs_what_each_line_ran() -> None:
    text = Path(__file__).with_name("debian_crontab.txt").read_text()
    tasks = read(text, with_users=True)
    assert [each.entry["cron"] for each in tasks] == [
        "17 * * * *",
        "25 6 * * *",
        "47 6 * * SUN",
        "52 6 1 * *",
    ]
    assert [each.entry["callback"] for each in tasks] == [SHELL] * 4
    assert [each.entry["args"] for each in tasks] == [
        ["cd / && run-parts --report /etc/cron.hourly"],
        [ANACRON + "daily; }"],
        [ANACRON + "weekly; }"],
        [ANACRON + "monthly; }"],
    ]
    assert all("ran as root" in [told.text for told in each.differences] for each in tasks)


def test_a_tab_stands_between_user_and_command() -> None:
    entry = entry_of("0 5 * * *\troot\tpython manage.py clear", with_users=True)
    assert entry["command"] == ["clear"]


@pytest.mark.parametrize(
    "command",
    [
        "manage.py load data/*.json",
        "manage.py load ~/data",
        "manage.py load a?.json",
        "manage.py load {a,b}.json",
        "manage.py load [ab].json",
        "manage.py load # every night",
        "manage.py load --path=~/data",
    ],
)
def test_what_a_shell_reads_is_given_to_a_shell(command: str) -> None:
    entry = entry_of(f"0 5 * * * {command}")
    assert (entry["callback"], entry["args"]) == (SHELL, [command])


def test_a_number_sign_within_a_word_is_a_part_of_it() -> None:
    assert entry_of("0 5 * * * manage.py load a#b")["command"] == ["load", "a#b"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0 5 * * * * manage.py clear", "more than five fields"),
        ("0 0 5 * * ? 2027 manage.py clear", "more than five fields"),
        ("0 5 * * * root manage.py clear", "add --system"),
        ("0 5 * * *", "not a line of a crontab"),
    ],
)
def test_a_line_that_hardly_means_what_it_says_is_listed(line: str, said: str) -> None:
    assert said in refusal_of(line)


def test_a_shell_that_the_file_names_runs_its_commands() -> None:
    (task,) = read("SHELL=/bin/bash\n0 5 * * * source x && echo 'a b'")
    assert task.entry["args"] == ["/bin/bash -c 'source x && echo '\"'\"'a b'\"'\"''"]
    assert any("SHELL" in told.text for told in task.differences)


def test_a_shell_that_the_file_names_is_given_the_input_of_a_line() -> None:
    (task,) = read("SHELL=/bin/bash\n0 5 * * * read a; [[ $a ]]%first%second")
    assert task.entry["args"] == ["/bin/bash -c 'read a; [[ $a ]]'", "first\nsecond\n"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("manage.py clear --settings=shop.other", "--settings=shop.other"),
        ("manage.py clear --settings shop.other", "--settings shop.other"),
        ("manage.py clear --pythonpath=/srv", "--pythonpath=/srv"),
        ("/srv/venv/bin/python manage.py clear", "/srv/venv/bin/python"),
        ("/srv/other/manage.py clear", "/srv/other/manage.py"),
        ("python -W ignore manage.py clear", "-W"),
        ("poetry run python manage.py clear", "poetry run"),
    ],
)
def test_what_only_its_process_was_told_is_told(command: str, said: str) -> None:
    task = one(f"0 5 * * * {command}")
    assert task.entry["command"] == ["clear"]
    assert any(f"`{said}`" in told.text for told in task.differences)


def test_arguments_that_make_the_parser_recurse_are_refused() -> None:
    for text in ("(" * 5_000 + ")" * 5_000, "[" * 100_000, "-" * 100_000 + "1"):
        with pytest.raises(UntranslatableError):
            django_q.arguments(text, "")


def test_a_line_that_no_reader_stands_is_listed_and_the_others_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read_command(task: ImportedTask, text: str, shell: str) -> None:
        if "hostile" in text:
            raise RecursionError("too deep")
        task.entry["command"] = [text]

    monkeypatch.setattr(crontab, "add_command", read_command)
    hostile, other = read("0 5 * * * hostile\n0 5 * * * clear")
    assert not hostile.entry
    assert "RecursionError: too deep" in hostile.differences[-1].text
    assert other.entry
