"""Debian's Chromium without a screen, driven over its DevTools protocol."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
import urllib.request

from websockets.sync.client import connect

PATIENCE_S = 120.0


def chromium():
    """Path of the browser; None: there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page; `close` ends the browser.

    Attributes:
        requests: URLs that the page asked for.
    """

    def __init__(self, folder, url, width=1200, height=800):
        words = [
            chromium(),
            "--headless=new",
            "--no-sandbox",
            "--no-first-run",
            "--disable-quic",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader",
            "--remote-debugging-port=0",
            f"--user-data-dir={folder}",
            f"--window-size={width},{height}",
            "about:blank",
        ]
        self._log = open(os.path.join(folder, "log"), "wb")  # noqa: SIM115
        self._process = subprocess.Popen(words, stdout=self._log, stderr=subprocess.STDOUT)
        try:
            port = self._until(lambda: self._port(folder))
            pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
            (page,) = (each for each in pages if each["type"] == "page")
            self._socket = connect(page["webSocketDebuggerUrl"], max_size=None)
        except BaseException:
            self._process.kill()
            raise
        self._number, self.requests, self.errors = 0, [], []
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Page.navigate", url=url)

    @staticmethod
    def _port(folder):
        with (
            contextlib.suppress(OSError, ValueError),
            open(os.path.join(folder, "DevToolsActivePort"), encoding="utf-8") as file,
        ):
            return int(file.readline())
        return None

    @staticmethod
    def _until(condition, patience_s=PATIENCE_S):
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(0.1)
        return None

    def call(self, method, **parameters):
        """Result of a command; what the page reports meanwhile is kept."""
        self._number += 1
        request = {"id": self._number, "method": method, "params": parameters}
        self._socket.send(json.dumps(request))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            if message.get("method") == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            elif message.get("method") == "Network.webSocketCreated":
                self.requests.append(message["params"]["url"])
            elif message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"].get("text"))

    def resize(self, width, height, mobile=False):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )

    def js(self, expression):
        """Value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def until(self, expression, patience_s=PATIENCE_S):
        """The first true value of an expression, None after the patience; `text` is what can be read."""
        found = f"(text => {expression})(document.body ? document.body.innerText : '')"
        return self._until(lambda: self.js(found), patience_s)

    def text(self):
        """All that can be read on the page."""
        return self.js("document.body ? document.body.innerText : ''")

    def centre(self, expression):
        """Middle of an element, pixels."""
        box = self.js(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect(); "
            f"return [b.x + b.width / 2, b.y + b.height / 2] }})({expression})"
        )
        return box

    def mouse(self, kind, x, y):
        """``kind``: mousePressed, mouseReleased or mouseMoved."""
        self.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button="none" if kind == "mouseMoved" else "left",
            buttons=0 if kind == "mouseReleased" else 1,
            clickCount=1,
        )

    def click(self, expression):
        x, y = self.centre(expression)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def key(self, kind, key, code=None):
        """``kind``: keyDown or keyUp; key and code as in the page's events."""
        self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()
