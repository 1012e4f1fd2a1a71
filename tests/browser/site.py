"""A web site with our pages and rows of its own, for a browser to look at; for scripts only."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .chromium import Chromium, installed

POLICY = "default-src 'self'"


def prepare(*, themed: bool) -> None:
    """Set Django up on an empty database in a temporary file; once in a process."""
    os.environ["DDC_TEST_DATABASE"] = "sqlite"
    os.environ["DDC_TEST_ADMIN_INTERFACE"] = "1" if themed else "0"
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    django.setup()
    settings.ROOT_URLCONF = "tests.admin.pages"
    settings.LOGGING_CONFIG = None
    settings.MIDDLEWARE = [f"{__name__}.Policy", *settings.MIDDLEWARE]
    settings.STATIC_ROOT = None
    folder = Path(tempfile.mkdtemp(prefix="ddc-site-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "site.sqlite3"
    connection.settings_dict["NAME"] = str(file)
    connection.settings_dict["OPTIONS"] = {"timeout": 20, "transaction_mode": "IMMEDIATE"}
    call_command("migrate", verbosity=0)


class Policy:
    """Send the strictest policy that a project may have; the theme has inline parts of its own."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __call__(self, request: Any) -> Any:
        response = self.answer(request)
        if os.environ["DDC_TEST_ADMIN_INTERFACE"] == "0":
            response["Content-Security-Policy"] = POLICY
        if request.path == "/favicon.ico":
            response.status_code = 200
        return response


@contextmanager
def served() -> Iterator[str]:
    """Serve the site from a thread; give its address."""
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.db import connection
    from django.test.testcases import LiveServerThread

    thread = LiveServerThread("127.0.0.1", StaticFilesHandler)
    thread.daemon = True
    thread.start()
    thread.is_ready.wait()
    if thread.error:
        raise thread.error
    try:
        yield f"http://127.0.0.1:{thread.port}"
    finally:
        thread.terminate()
        connection.close()


@contextmanager
def opened(base: str) -> Iterator[Chromium]:
    """Open the site in a browser, as the person who may do everything."""
    executable = installed()
    if executable is None:
        sys.exit("Install chromium, or name one in DDC_CHROMIUM.")
    from django.contrib.auth.models import User

    User.objects.create_superuser("ada", password="green")
    browser = Chromium(executable)
    try:
        browser.go(f"{base}/admin/login/?next=/admin/")
        browser.fill("#id_username", "ada")
        browser.fill("#id_password", "green")
        browser.click("[type=submit]")
        yield browser
    finally:
        browser.close()
