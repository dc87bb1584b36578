# Settle
# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium through its driver, over the WebDriver protocol: as much of it as the tests need."""

import base64
import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import ingress

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class DriverError(Exception):
    pass


def missing():
    """The missing programs, in words; empty if all are installed."""
    absent = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return ", ".join(absent)


class Driver:
    """One chromedriver process, which starts browsers."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="settle-panel-")
        self.process = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True, env={**os.environ, "TMPDIR": self.folder})
        self.port = None
        for line in self.process.stdout:
            if "started successfully on port" in line:
                self.port = int(line.rsplit(" ", 1)[1].strip().rstrip("."))
                break
        if self.port is None:
            raise DriverError("chromedriver did not start")

    def browser(self, **options):
        return Browser(self, **options)

    def call(self, method, path, body=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise DriverError(f"{value['error']}: {value['message'].splitlines()[0]}")
        return value

    def close(self):
        # The driver has its own process group: its browsers end with it.
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(timeout=5)
                break
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Browser:
    """One browser with its own profile."""

    def __init__(self, driver, width=1280, height=900, scheme="light", motion="no-preference", scale=1, touch=False):
        self.driver = driver
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-sync",
            "--disable-component-update", "--no-default-browser-check", "--mute-audio",
            f"--host-resolver-rules=MAP {ingress.HOST} 127.0.0.1", *(["--ignore-certificate-errors"] if ingress.IS_ENCRYPTED else []),
        ]
        answer = driver.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": arguments},
        }}}, timeout=120)
        self.path = f"/session/{answer['sessionId']}"
        self.finger = None
        self.resize(width, height, scale, touch)
        self.media(scheme, motion)

    def close(self):
        try:
            self.call("DELETE", "")
        except (DriverError, OSError):
            pass

    def call(self, method, path, body=None):
        return self.driver.call(method, self.path + path, body)

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height, scale=1, touch=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=touch)
        self.devtools("Emulation.setTouchEmulationEnabled", enabled=touch)

    def media(self, scheme, motion="no-preference"):
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": motion}])

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """Runs a function body in the page; awaits its result."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments, seconds=float(os.environ.get("PATIENCE", 60)), what=None):
        """Waits until a function body returns a true value, and returns it."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"in vain for {seconds} s: {what or script}")
            time.sleep(0.02)

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)[ELEMENT]}/click", {})

    def type(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)[ELEMENT]}/value", {"text": text})

    def press(self, *keys):
        actions = [step for key in keys for step in ({"type": "keyDown", "value": key}, {"type": "keyUp", "value": key})]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    # A finger on the page. WebDriver's own actions release a slider when one call ends, so these are
    # events of the browser.

    def press_at(self, x, y):
        self.mouse("mouseMoved", x, y, 0)
        self.mouse("mousePressed", x, y, 1)

    def slide_to(self, x, y):
        self.mouse("mouseMoved", x, y, 1)

    def lift(self):
        if self.finger:
            self.mouse("mouseReleased", *self.finger, 0)
        self.finger = None

    def mouse(self, kind, x, y, buttons):
        self.finger = (x, y)
        self.devtools("Input.dispatchMouseEvent", type=kind, x=x, y=y, buttons=buttons, clickCount=0 if kind == "mouseMoved" else 1,
                      button="none" if kind == "mouseMoved" and not buttons else "left")

    def touch(self, kind, *points):
        self.devtools("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])

    def box(self, selector):
        """A visible element's place: x, y, width, height; scrolled into view."""
        return self.run("""
            const node = document.querySelector(arguments[0]);
            node.scrollIntoView({ block: "center" });
            const { x, y, width, height } = node.getBoundingClientRect();
            return { x, y, width, height };""", selector)

    def screenshot(self, path, whole=False):
        parameters = {"format": "png"}
        if whole:
            size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
            parameters.update(captureBeyondViewport=True, clip={
                "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.devtools("Page.captureScreenshot", **parameters)["data"]))

    def complaints(self):
        """The browser's console output, including errors and policy violations."""
        entries = self.call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]


KEYS = {"right": "\ue014", "left": "\ue012", "up": "\ue013", "down": "\ue015", "enter": "\ue007", "tab": "\ue004",
        "space": " ", "escape": "\ue00c", "home": "\ue011", "end": "\ue010"}
