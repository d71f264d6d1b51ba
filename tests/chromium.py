"""A headless Chromium that a test tells what to do, by its own protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-port=0"
).split()


class Page:
    """The page of a browser."""

    def __init__(self, connection: Any) -> None:
        self._connection, self._count = connection, 0
        self.problems: list[str] = []  # what the page's programs and its console complained of
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        self._connection.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            news = json.loads(self._connection.recv(timeout=60))
            if news.get("method") == "Runtime.exceptionThrown":
                self.problems.append(str(news["params"]["exceptionDetails"]))
            elif news.get("method") == "Log.entryAdded" and news["params"]["entry"]["level"] == "error":
                self.problems.append(str(news["params"]["entry"]))
            if news.get("id") == self._count:
                assert "error" not in news, news
                return dict(news["result"])

    def value(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 60) -> Any:
        """The value of an expression, once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            told = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
            found = "exceptionDetails" not in told and told["result"].get("value")  # nothing where it still loads
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"{expression} did not become true; the page complained of {self.problems}")

    def size(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextlib.contextmanager
def opened(url: str, folder: Path) -> Iterator[Page]:
    """A browser that shows a page."""
    from websockets.sync.client import connect  # here, so that tests without a browser do not need it

    assert PROGRAM is not None
    process = subprocess.Popen(
        [PROGRAM, *_FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        told, end = folder / "DevToolsActivePort", time.monotonic() + 60
        while not (told.exists() and told.read_text().count("\n")):
            assert process.poll() is None, "Chromium did not start"
            assert time.monotonic() < end, "Chromium does not say where it listens"
            time.sleep(0.05)
        port = told.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
            tab = next(tab for tab in json.load(answer) if tab["type"] == "page")
        with connect(tab["webSocketDebuggerUrl"], max_size=None, compression=None) as connection:
            page = Page(connection)
            page.call("Page.navigate", url=url)
            yield page
    finally:
        process.terminate()
        process.wait()
