"""A ``manage.py`` as django-configurations asks for."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_CONFIGURATION", "Project")
    from configurations.management import execute_from_command_line

    execute_from_command_line(sys.argv)
