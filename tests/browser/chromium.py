"""Drive chromium by its DevTools protocol through a pair of pipes; nothing to install but it."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..timeouts import TIMEOUT

PATIENCE = 1200.0
"""For all pages in all widths and themes."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--hide-scrollbars", "--force-color-profile=srgb", "--no-first-run"),
    *("--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe"),
)


def installed() -> str | None:
    """Give the path of a chromium, ``None`` where there is none."""
    found = (shutil.which(name) for name in NAMES)
    return os.environ.get("DDC_CHROMIUM") or next(filter(None, found), None)


class Chromium:
    """One browser with one page.

    What a page reports is kept: ``problems`` are errors of its console, exceptions of
    its scripts, refusals of its security policy and requests that failed.
    """

    def __init__(self, executable: str) -> None:
        self.problems: list[str] = []
        self._events: list[dict[str, Any]] = []
        self._number = 0
        self._buffer = b""
        self._profile = tempfile.mkdtemp(prefix="ddc-chromium-")
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self._process = self._start(executable, theirs_in, theirs_out)
        os.close(theirs_in)
        os.close(theirs_out)
        self._session = self._attach()

    def _start(self, executable: str, reads: int, writes: int) -> subprocess.Popen[bytes]:
        # The protocol is spoken on descriptors 3 and 4; a shell puts them there.
        command = f'exec "$0" "$@" 3<&{reads} 4>&{writes}'
        flags = [*_FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        return subprocess.Popen(
            ["bash", "-c", command, executable, *flags],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _attach(self) -> str:
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = str(session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        return self._session

    def show(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        window = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self._call("Emulation.setDeviceMetricsOverride", **window)
        wanted = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[wanted])

    def go(self, url: str) -> None:
        self._events.clear()
        answer = self._call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise RuntimeError(f"{url}: {answer['errorText']}")
        self.wait_for_load()

    def click(self, selector: str) -> None:
        """Click on what leads to another page, and wait until that is loaded."""
        self._events.clear()
        found = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " if (e) e.click(); return !!e; })()"
        )
        assert found, f"nothing to click on: {selector} in {self.text()[:2000]}"
        self.wait_for_load()

    def fill(self, selector: str, value: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(value)}")

    def text(self) -> str:
        """Give what is to be read on the page, with single spaces."""
        return " ".join(str(self.run("document.body.innerText")).split())

    def run(self, script: str) -> Any:
        answer = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, what: Callable[[], bool]) -> None:
        end = time.monotonic() + TIMEOUT
        while not what():
            assert time.monotonic() < end, f"not within {TIMEOUT} s: {self.text()[:2000]}"
            self._listen(0.1)

    def height(self) -> int:
        return int(self._call("Page.getLayoutMetrics")["cssContentSize"]["height"])

    def picture(self, path: Path, *, most: int = 10_000) -> None:
        """Store a picture of the page, of its upper part where it is long."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], most)}
        whole = {"captureBeyondViewport": True, "clip": {**clip, "scale": 1}}
        answer = self._call("Page.captureScreenshot", format="png", **whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        with suppress(RuntimeError, OSError, AssertionError):
            self._call("Browser.close", session=False)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def wait_for_load(self) -> None:
        end = time.monotonic() + TIMEOUT
        while not any(each["method"] == "Page.loadEventFired" for each in self._events):
            assert time.monotonic() < end, "the page was not loaded"
            self._listen(0.2)

    def _call(self, method: str, *, session: bool = True, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session and hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            for answer in self._listen(0.5):
                if answer.get("id") == number:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']}")
                    return dict(answer["result"])
        raise AssertionError(f"{method} was not answered")

    def _listen(self, patience: float) -> list[dict[str, Any]]:
        if not select.select([self._in], [], [], patience)[0]:
            return []
        data = os.read(self._in, 1 << 20)
        if not data:
            raise RuntimeError("the browser has ended")
        *whole, self._buffer = (self._buffer + data).split(b"\0")
        messages = [json.loads(each) for each in whole]
        for message in messages:
            if "method" in message:
                self._events.append(message)
                self._note(message["method"], message["params"])
        return messages

    def _note(self, method: str, told: dict[str, Any]) -> None:
        match method:
            case "Runtime.exceptionThrown":
                self.problems.append(str(told["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                self.problems.append(str(told["args"]))
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                self.problems.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
