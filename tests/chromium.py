"""A page in a headless Chromium, driven over its own devtools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from websockets.sync.client import connect
from websockets.sync.connection import Connection

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE_SECONDS = 300.0
_MOST_TABS = 200
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
]


class NavigatingError(Exception):
    """The tab went to another page before it answered."""


class Page:
    """One tab."""

    def __init__(self, socket: Connection) -> None:
        self._socket = socket
        self._last = 0

    def open(self, url: str) -> None:
        """Go there, or where that leads, and wait for the page; what it draws comes later."""
        self.send("Page.navigate", url="about:blank")  # the same address again would leave the old page for a while
        self.until("location.href === 'about:blank'")
        self.send("Page.navigate", url=url)
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, on the page that the tab goes to if it is on its way."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._evaluate_here(expression)
            except NavigatingError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _evaluate_here(self, expression: str) -> Any:
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._is_true(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{expression} stays false on\n{self.evaluate('document.body.innerText')}")
            time.sleep(0.1)

    def _is_true(self, expression: str) -> bool:
        """True if an expression is true on the page that the tab shows now; false while it goes to another one."""
        try:
            return bool(self._evaluate_here(expression))
        except NavigatingError:
            return False

    def write(self, selector: str, text: str) -> None:
        """Put text into a field and press Enter, as somebody at a keyboard does, until the page shows what was said."""
        field = f"document.querySelector({selector!r})"
        self.until(field + " !== null")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:  # a page that is still busy lets keys pass, or draws its field anew
            self.evaluate(f"{field}.focus()")
            if self.evaluate(f"{field}.value") == "":
                self.send("Input.insertText", text=text)
            self._press_enter()
            if self._shows(text):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"the page does not take {text!r}")

    def _shows(self, text: str) -> bool:
        """True if the page shows the text within some seconds; what a field holds does not count."""
        for _ in range(50):
            if self._is_true(f"document.body.innerText.includes({text!r})"):
                return True
            time.sleep(0.1)
        return False

    def _press_enter(self) -> None:
        self.press("Enter", 13, "\r")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def reach(self, selector: str) -> None:
        """Press Tab until the focus is on what is meant; it is visible there, with a ring around it."""
        chosen = f"document.activeElement.matches({selector!r})"
        for _ in range(_MOST_TABS):
            self.press("Tab", 9)
            if self.evaluate(chosen):
                break
        assert self.evaluate(f"{chosen} && document.activeElement.matches(':focus-visible')"), f"no way to {selector}"
        ring = "getComputedStyle(document.activeElement).outlineStyle"
        assert self.evaluate(f"{ring} !== 'none' && document.activeElement.getClientRects().length > 0"), selector

    def type(self, text: str) -> None:
        """Put text in place of what the field with the focus holds, with the keyboard."""
        for kind in ("keyDown", "keyUp"):
            key = {"key": "a", "code": "KeyA", "windowsVirtualKeyCode": 65, "modifiers": 2, "commands": ["selectAll"]}
            self.send("Input.dispatchKeyEvent", type=kind, **key)
        self.send("Input.insertText", text=text)

    def enter(self) -> None:
        """Press Enter, and wait for the page that follows."""
        self.evaluate("window.before = true")
        with suppress(NavigatingError):
            self._press_enter()
        self.until("window.before === undefined && document.readyState === 'complete'")

    def fill(self, selector: str, text: str) -> None:
        """Write into a field in place of what it holds, without Enter; what hides it is opened."""
        field = f"document.querySelector({selector!r})"
        self.until(f"{field} !== null")
        self.evaluate(f"{field}.closest('details')?.setAttribute('open', '')")
        self.evaluate(f"{field}.focus(), {field}.select()")
        self.send("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click what is there, and wait for the page that follows, if one does."""
        self.until(f"document.querySelector({selector!r}) !== null")
        self.evaluate("window.before = true")
        with suppress(NavigatingError):
            self._evaluate_here(f"document.querySelector({selector!r}).click()")

    def follow(self, selector: str) -> None:
        """Click a link or a button that leads to another page, and wait for that."""
        self.click(selector)
        self.until("window.before === undefined && document.readyState === 'complete'")

    def shows(self, text: str) -> bool:
        """True if the page shows the text now."""
        return bool(self.evaluate(f"document.body.innerText.includes({text!r})"))

    def until_shown(self, text: str) -> None:
        """Wait until the page shows the text."""
        self.until(f"document.body.innerText.includes({text!r})")

    def look(self, *, width: int, dark: bool, height: int = 900) -> None:
        """Show the page in a size, in one of the two colour schemes."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        self.send("Emulation.setScrollbarsHidden", hidden=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self) -> bytes:
        """The whole page as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def send(self, method: str, **parameters: object) -> dict[str, Any]:
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while True:
            message: dict[str, Any] = json.loads(self._socket.recv(PATIENCE_SECONDS))
            if message.get("id") == self._last:
                break
        if "navigated" in message.get("error", {}).get("message", ""):
            raise NavigatingError(message["error"]["message"])
        assert "error" not in message, message["error"]
        return dict(message["result"])


def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """The address of a browser, which writes it into its profile once it listens there."""
    file, deadline = profile / "DevToolsActivePort", time.monotonic() + PATIENCE_SECONDS
    while len(said := file.read_text(encoding="utf-8").split() if file.exists() else []) < 2:
        assert process.poll() is None, "Chromium ended"
        assert time.monotonic() < deadline, "Chromium does not listen"
        time.sleep(0.05)
    port, path = said
    return f"ws://127.0.0.1:{port}{path}"


@contextmanager
def page(profile: Path) -> Iterator[Page]:
    """A new Chromium with an empty profile."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    # A pipe that nobody reads would stop a browser that says a lot.
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            browser = _address(profile, process)
            with connect(browser, max_size=None) as whole:
                whole.send(json.dumps({"id": 1, "method": "Target.getTargets", "params": {}}))
                targets = json.loads(whole.recv(PATIENCE_SECONDS))["result"]["targetInfos"]
            tab = next(target["targetId"] for target in targets if target["type"] == "page")
            address = browser.partition("/devtools/")[0]
            with connect(f"{address}/devtools/page/{tab}", max_size=None) as tab_socket:
                yield Page(tab_socket)
        finally:
            process.terminate()
