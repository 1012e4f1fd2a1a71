"""Build what is to be uploaded, and check it: `tox run -e release -- --final`.

Without ``--final``, as CI does, the changes may still be unreleased.

Writes into `dist/`: the wheel, the source distribution, and a bill of materials in CycloneDX.
Exit code 1, and a line for each, where something is not as it should be.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PACKAGE = "django_declarative_cron"
# A release is tried with each Python that is here, a change with the one that checks it.
PYTHONS = ("3.11", "3.12", "3.13", "3.14") if "--final" in sys.argv else (sys.executable,)
TRY = """
import django
from django.conf import settings
settings.configure(
    SECRET_KEY="release",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "{package}"],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}},
    SCHEDULED_TASKS=[{{"name": "a", "cron": "@daily", "timezone": "UTC", "command": ["check"]}}],
)
django.setup()
from django.core.management import call_command
call_command("check")
call_command("migrate", verbosity=0)
call_command("cron", "next", "a")
"""


def main() -> int:
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--installer", "uv", "--outdir", str(DIST), str(ROOT))
    (wheel,), (source,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    _run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source))
    # W004: names of migrations begin with a digit.
    _run("check-wheel-contents", "--ignore", "W004", str(wheel))
    found = [*_wrong_in_wheel(wheel), *_wrong_in_source(source), *_wrong_in_changes()]
    with tempfile.TemporaryDirectory() as folder:
        found += _wrong_when_installed(wheel, Path(folder))
    for line in found:
        print(f"wrong: {line}", file=sys.stderr)
    return 1 if found else 0


def _run(*command: str, **options: str) -> None:
    subprocess.run(command, check=True, **options)  # type: ignore[call-overload]


def _version() -> str:
    text = (ROOT / PACKAGE / "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0]


def _files_of_the_package() -> set[str]:
    paths = (path.relative_to(ROOT) for path in (ROOT / PACKAGE).rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if "__pycache__" not in path.parts}


def _wrong_in_wheel(wheel: Path) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        (where,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(where).decode())
    inside = {name for name in names if not name.startswith(where.split("/")[0])}
    for name in sorted(inside ^ _files_of_the_package()):
        yield f"{name} is in the wheel or in the repository, and not in both"
    if metadata["Version"] != _version():
        yield f"the wheel says version {metadata['Version']}, the package {_version()}"
    for field in ("Name", "Summary", "License-Expression", "Requires-Python", "Keywords"):
        if not metadata[field]:
            yield f"the metadata has no {field}"
    if not any(name.endswith("licenses/LICENSE") for name in names):
        yield "the licence is not in the wheel"


def _wrong_in_source(source: Path) -> Iterator[str]:
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "tox.ini", ".ci/run"}
    for name in sorted((wanted | _files_of_the_package()) - names):
        yield f"{name} is not in the source distribution"
    for name in sorted(names):
        if re.search(r"\.(pyc|sqlite3)$|__pycache__|/var/", name):
            yield f"{name} should not be in the source distribution"


def _wrong_in_changes() -> Iterator[str]:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[(.+?)\](?: - (\S+))?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    by_name = {name: (date, re.findall(r"^- ", body, re.M)) for name, date, body in sections}
    _, unreleased = by_name.get("Unreleased", ("", []))
    date, entries = by_name.get(_version(), ("", []))
    if not entries and not unreleased:
        yield f"the changes say nothing of {_version()}"
    if "--final" in sys.argv:
        if unreleased:
            yield f"what is unreleased in the changes should stand under {_version()}"
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
            yield f"the changes have no date for {_version()}"


def _wrong_when_installed(wheel: Path, folder: Path) -> Iterator[str]:
    """Install into an empty environment of each Python that is here, and try it."""
    tried = []
    for version in PYTHONS:
        environment = folder / Path(version).name
        made = subprocess.run(
            ["uv", "venv", "--quiet", "--no-python-downloads", "--python", version, environment],
            stderr=subprocess.DEVNULL,
        )
        if made.returncode:
            print(f"Left out, because it is not installed: Python {version}")
            continue
        python = str(environment / "bin" / "python")
        _run("uv", "pip", "install", "--quiet", "--python", python, str(wheel))
        done = subprocess.run([python, "-W", "error", "-c", TRY.format(package=PACKAGE)], text=True)
        if done.returncode:
            yield f"with Python {version} it cannot be used as installed"
        tried.append(python)
    if not tried:
        yield "there is no Python to try it with"
        return
    _run("cyclonedx-py", "environment", "--output-file", str(DIST / "sbom.cdx.json"), tried[-1])
    parts = json.loads((DIST / "sbom.cdx.json").read_text(encoding="utf-8"))["components"]
    if "django-declarative-cron" not in {part["name"] for part in parts}:
        yield "the bill of materials does not name the distribution"


if __name__ == "__main__":
    sys.exit(main())
