"""Run the shop: its database made ready, its web site and its scheduler side by side.

Exit codes: 0 stopped as asked, 1 web or scheduler ended by itself, 2 wrong use.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOST = "127.0.0.1"
# Beyond DECLARATIVE_CRON["GRACE"], so that the scheduler is the one to lose patience.
PATIENCE = 25.0
START_UP = 30.0
SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]

Child = subprocess.Popen[bytes]


def main() -> int:
    given = _arguments()
    if not _is_free(given.port):
        print(f"Port {given.port} of {HOST} is taken. Choose another: --port {_free_port()}")
        return 2
    _prepare()
    if given.check:
        print("The shop is ready to run.")
        return 0
    return _run(given.port)


def _run(port: int) -> int:
    """Start both, wait for an end, stop both."""
    received = _collect_signals()
    children: dict[str, Child] = {}
    try:
        # What it says of itself is in the banner below, and Ctrl-C is not for it alone.
        children["web site"] = _manage(
            "runserver", f"{HOST}:{port}", "--noreload", stdout=subprocess.DEVNULL
        )
        if _answers(port, children["web site"], received):
            _banner(port)
            children["scheduler"] = _manage("runscheduler")
        ended = _watch(children, received)
    finally:
        _stop(children, received)
    if ended:
        print(f"The {ended}, so everything was stopped.")
    return 1 if ended else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the example shop: web site and scheduler.")
    parser.add_argument("--port", type=int, default=8000, help="of the web site (default: 8000)")
    parser.add_argument(
        "--check", action="store_true", help="make the database ready, and start nothing"
    )
    return parser.parse_args()


# --- before ---


def _prepare() -> None:
    """Bring the database up to date and fill it; safe to repeat."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    try:
        import django
        from django.core.management import call_command
        from django.db import connections

        django.setup()
    except ModuleNotFoundError as error:
        print(f"{error}. Install the package first, in the folder above: pip install '.[admin]'")
        raise SystemExit(2) from None
    print("Making the database ready ...", flush=True)
    call_command("migrate", verbosity=0)
    call_command("seed")
    connections.close_all()


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        if os.name == "posix":
            # As the web server does: connections of its predecessor may still be closing.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


# --- running ---


def _manage(*words: str, stdout: int | None = None) -> Child:
    # In a session of its own, so that Ctrl-C reaches this process only: it alone decides
    # in which order things end. A second signal would make the scheduler drop its runs.
    return subprocess.Popen(
        [sys.executable, "-u", str(HERE / "manage.py"), *words],
        env={**os.environ, "DJANGO_RUNSERVER_HIDE_WARNING": "true"},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        start_new_session=True,
    )


def _answers(port: int, web: Child, received: list[int]) -> bool:
    """Wait until the web site can be opened."""
    deadline = time.monotonic() + START_UP
    while web.poll() is None and not received and time.monotonic() < deadline:
        with socket.socket() as client:
            client.settimeout(1)
            if client.connect_ex((HOST, port)) == 0:
                return True
        time.sleep(0.1)
    return False


def _banner(port: int) -> None:
    from shop.seeding import STAFF_NAME, STAFF_PASSWORD, seed_staff

    password = STAFF_PASSWORD if seed_staff() else "(the one you gave it)"
    address = f"http://{HOST}:{port}/admin/"
    inbox = HERE / "var" / "inbox"
    if inbox.is_relative_to(Path.cwd()):
        inbox = inbox.relative_to(Path.cwd())
    print(
        f"""
{"=" * 78}
  The shop is open    {address}
  Scheduled tasks     {address}django_declarative_cron/scheduledtask/
  User, password      {STAFF_NAME}, {password}
  Inbox               {inbox}
                      One file there is malformed. Fix it, and see its task recover.
  Ctrl-C stops both, web site and scheduler.
{"=" * 78}
""",
        flush=True,
    )


def _watch(children: dict[str, Child], received: list[int]) -> str:
    """Wait for a signal, or for a child that ends by itself; say which and how."""
    while not received:
        for name, child in children.items():
            code = child.poll()
            if code is not None:
                return f"{name} ended by itself, {_how(code)}"
        if len(children) < 2:
            return "web site did not open"
        time.sleep(0.2)
    return ""


def _how(code: int) -> str:
    """Word an exit code, which is below zero for a process that a signal ended."""
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


# --- stopping ---


def _collect_signals() -> list[int]:
    """Give a list that grows with every signal; the handler does nothing else."""
    received: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, _: received.append(number))
    return received


def _stop(children: dict[str, Child], received: list[int]) -> None:
    """Ask everybody to end, wait, and insist after a second signal or too long a wait."""
    asked_before = len(received)
    print("\nStopping web site and scheduler ...", flush=True)
    for child in children.values():
        child.terminate()
    deadline = time.monotonic() + PATIENCE
    while any(child.poll() is None for child in children.values()):
        if len(received) > asked_before or time.monotonic() > deadline:
            for child in children.values():
                child.kill()
        time.sleep(0.1)
    print("Stopped.", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nStopped before anything was started.")
