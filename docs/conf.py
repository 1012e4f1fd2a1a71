"""The documentation site: `sphinx-build --fail-on-warning docs site`."""

from __future__ import annotations

import ast
from pathlib import Path

import django
from django.conf import settings

_PACKAGE = Path(__file__).parents[1] / "django_declarative_cron" / "__init__.py"


def _version() -> str:
    for node in ast.parse(_PACKAGE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            return str(ast.literal_eval(node.value))
    raise LookupError(f"{_PACKAGE} names no version")


settings.configure(
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django_declarative_cron",
    ],
)
django.setup()

project = "django-declarative-cron"
author = "django-declarative-cron contributors"
project_copyright = author
release = version = _version()

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_typehints = "description"
autodoc_preserve_defaults = True
# Anchors spelled as code hosts spell them: the pages read well in both places.
myst_heading_anchors = 3

# A command over several lines is no error of the shell's grammar.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"{project} {release}"
# A reader's browser asks nobody else for anything.
html_copy_source = False
