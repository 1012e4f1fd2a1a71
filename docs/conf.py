"""The documentation site: `sphinx-build --fail-on-warning docs site`."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import django
from django.conf import settings
from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# The checkout has the marks of the tests, and `_ext` writes the reference tables.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent / "_ext")]

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
myst_enable_extensions = ["alert"]

# A command over several lines is no error of the shell's grammar.
suppress_warnings = ["misc.highlighting_failure"]

exclude_patterns = ["_ext", "generated"]
html_theme = "furo"
html_title = f"{project} {release}"
# A reader's browser requests nothing from other sites.
html_copy_source = False


class Generated(SphinxDirective):
    """Show a table that is written from the code, such as ``{generated} options``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[Node]:
        from tables import generate

        return self.parse_text_to_nodes(generate(self.arguments[0]), allow_section_headings=True)


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("generated", Generated)
