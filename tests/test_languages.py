"""The catalogues that are shipped have every text, and change nothing but its language."""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import translation
from django.utils.translation.template import templatize

import django_declarative_cron
from django_declarative_cron.core.explain import Cause
from django_declarative_cron.store.sentences import _TEXTS

ROOT = Path(django_declarative_cron.__file__).parent
LANGUAGES = ("de", "es", "fr", "uk")
NAMES = {"gettext", "gettext_lazy", "ngettext", "ngettext_lazy", "_"}


def catalogue(language: str) -> gettext.GNUTranslations:
    with (ROOT / "locale" / language / "LC_MESSAGES" / "django.mo").open("rb") as file:
        return gettext.GNUTranslations(file)


def entries(language: str) -> dict[str, list[str]]:
    """Give what a catalogue has for each text, all forms of plurals together."""
    found: dict[str, list[str]] = {}
    for key, text in catalogue(language)._catalog.items():  # type: ignore[attr-defined]
        found.setdefault(key[0] if isinstance(key, tuple) else key, []).append(text)
    found.pop("", None)
    return found


def texts_of(source: str) -> Iterator[str]:
    """Give the first texts of all calls that ask for a translation."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
        called = name if isinstance(name, str) else getattr(name, "id", "")
        first = node.args[0]
        if called in NAMES and isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value


def asked_for() -> dict[str, str]:
    """Give every text that the package asks for, with the file that does."""
    found = {}
    for path in ROOT.rglob("*.py"):
        for text in texts_of(path.read_text(encoding="utf-8")):
            found[text] = path.name
    for path in (ROOT / "templates").rglob("*.html"):
        for text in texts_in_template(path.read_text(encoding="utf-8")):
            found[text] = path.name
    return found


def texts_in_template(source: str) -> Iterator[str]:
    calls = re.findall(r"\b_?n?gettext\((?:u?(?:'''|\"\"\"|'|\").*?\)(?=\s|$))", templatize(source))
    for call in calls:
        yield from texts_of(call.removeprefix("_"))


def test_texts_are_found_where_they_are_asked_for() -> None:
    found = asked_for()
    assert found["Run now"] == "actions.py"
    assert found["Why?"] == "state.html"
    assert found["%(number)s task is overdue."] == "scheduler_banner.html"
    assert len(found) > 300


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_is_complete(language: str) -> None:
    """Run ``django-admin makemessages`` and ``compilemessages`` in the package to mend it."""
    missing = {text: file for text, file in asked_for().items() if text not in entries(language)}
    assert missing == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_has_the_places_of_its_text(language: str) -> None:
    def places(text: str) -> list[str]:
        return sorted(re.findall(r"%\(\w+\)[sd]|\{\w*\}", text))

    wrong = [
        text
        for text, translated in entries(language).items()
        for each in translated
        if places(each) != places(text) or not each.strip()
    ]
    # What is said of one event has no word for the oldest.
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_plurals_have_all_their_forms(language: str) -> None:
    forms = 3 if language == "uk" else 2
    keys = catalogue(language)._catalog  # type: ignore[attr-defined]
    plurals: dict[str, set[int]] = {}
    for key in keys:
        if isinstance(key, tuple):
            plurals.setdefault(key[0], set()).add(key[1])
    assert plurals
    assert all(found == set(range(forms)) for found in plurals.values())


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "1 завдання прострочене."),
        (3, "3 завдання прострочені."),
        (5, "5 завдань прострочено."),
        (21, "21 завдання прострочене."),
    ],
)
def test_ukrainian_counts_as_it_does(number: int, text: str) -> None:
    with translation.override("uk"):
        said = translation.ngettext(
            "%(number)s task is overdue.", "%(number)s tasks are overdue.", number
        )
    assert said % {"number": number} == text


def test_every_cause_has_a_sentence() -> None:
    assert set(_TEXTS) == set(Cause)


# One word for one concept, in each language: how each of these has to begin there.
GLOSSARY = {
    "schedulers?": ("scheduler", "planificador", "ordonnanceur", "планувальник"),
    "occurrences?": ("vorkommen", "ocurrencia", "occurrence", "поді"),
    "planned": ("vorgesehen", "previst", "prévu", "заплан"),
    "registere?d?": ("anmeld|angemeldet", "registr", "enregistr", "зареєстр|реєстр"),
    "requested": ("verlangt", "pedid", "demand", "замовлен"),
    "pending": ("ausstehend|steht aus", "pendiente", "en attente", "очіку"),
    "paused": ("pausiert", "pausa|pausó", "pause", "на пауз|призупин"),
    "succeeded": ("erfolgreich|gelang", "con éxito|tuvo éxito", "réussi", "вдал"),
    "skip(?:s|ped)?": ("überspr|spring", "omit|omisi|saltar", "saut|aller", "пропу|перейти"),
    "missed": ("versäumt", "perdida|perdió", "manqué", "проґавлен"),
    "^can": ("kann", "puede", "peut", "може"),
}


@pytest.mark.parametrize("word", GLOSSARY)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_concept_has_one_word(language: str, word: str) -> None:
    wanted = GLOSSARY[word][LANGUAGES.index(language)]
    texts = {
        text: translated
        for text, translated in entries(language).items()
        if re.search(rf"\b{word}\b", text, re.IGNORECASE)
    }
    assert texts
    others = {
        text: each
        for text, translated in texts.items()
        for each in translated
        if not re.search(rf"\b(?:{wanted})", each, re.IGNORECASE)
    }
    assert others == {}
