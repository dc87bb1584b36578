# Settle
# SPDX-License-Identifier: Apache-2.0
"""A stage, a browser on it, and the gestures of a finger."""

import os
import re
import time
import unittest

import ingress
from stage import IN_FRAME, Stage
from webdriver import Browser, Driver

HERE = os.path.dirname(os.path.abspath(__file__))


class Panel(Browser):
    """A browser on the panel. A command that names a property's row opens the sheet of its device first."""

    def reveal(self, *texts):
        devices = [device for text in texts if isinstance(text, str) for device in re.findall(r"\[data-key='([^/']+)/", text)]
        if not devices or super().run("return globalThis.settlePanel?.sheet.device?.id === arguments[0]", devices[0]):
            return
        self.wait("return globalThis.settlePanel?.isLoaded")
        super().run("location.hash = '#-/' + arguments[0]", devices[0])
        self.wait("return settlePanel.sheet.device?.id === arguments[0] && settlePanel.sheet.dialog.getAnimations().length === 0", devices[0], seconds=10)

    def open_with(self, script, url, language="en"):
        """Opens the panel in a language, in a page that runs a script before its own."""
        script += f"localStorage.setItem('settle.choices', JSON.stringify({{ language: '{language}' }}));"
        known = self.devtools("Page.addScriptToEvaluateOnNewDocument", source=f"if (location.protocol === 'http:') {{ {script} }}")
        try:
            self.open(url)
        finally:
            self.devtools("Page.removeScriptToEvaluateOnNewDocument", **known)

    def fold(self):
        """Closes the sheet."""
        super().run("settlePanel.sheet.dialog.close()")
        self.wait("return !settlePanel.sheet.dialog.open && !location.hash.includes('/')")

    def open(self, url):
        # An address that differs in its fragment alone is no new page.
        super().open("about:blank")
        super().open(url.replace(ingress.PATH + "/", "/", 1))
        if ingress.PATH in url:
            self.enter()

    def enter(self):
        """Enters the page's frame, if it is in one; a change of the window leaves it."""
        if IN_FRAME:
            self.call("POST", "/frame", {"id": self.call("POST", "/element", {"using": "css selector", "value": "iframe"})})

    def run(self, script, *arguments):
        self.reveal(script, *arguments)
        return super().run(script, *arguments)

    def find(self, selector):
        self.reveal(selector)
        return super().find(selector)


class Browsers:
    """The driver, for the tests of a module."""

    driver = None

    @classmethod
    def start(cls):
        cls.driver = Driver()
        unittest.addModuleCleanup(cls.driver.close)

    @classmethod
    def browser(cls, **options):
        return Panel(cls.driver, **options)


#: For tests of what a trusted proxy makes needless.
has_token = unittest.skipIf(IN_FRAME, "in Home Assistant the page asks for no token")


def row(key):
    return f"[data-key='{key}']"


class Case(unittest.TestCase):
    """A stage and a browser on it, for all tests of a class."""

    settings = {}

    @classmethod
    def setUpClass(cls):
        cls.stage = Stage(**cls.settings)
        cls.addClassCleanup(cls.stage.close)
        cls.browser = Browsers.browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.open(self.browser)

    def open(self, browser):
        browser.open(self.stage.url)
        browser.wait("return document.querySelectorAll('.tile').length >= 8 && document.getElementById('link').dataset.state === 'live'",
                     what="the page is live")
        # The requests of the previous test have ended.
        browser.wait("return !document.querySelector('[data-progress=settling], [data-progress=sending], [data-progress=sent]')")

    def tearDown(self):
        self.browser.lift()
        complaints = [line for line in self.browser.complaints() if not self.is_expected(line)]
        self.assertEqual(complaints, [])

    def is_expected(self, complaint):
        return False

    def forget(self):
        """Forgets the choices of this browser, which the page would keep again when it hears of those for all screens."""
        self.browser.run("if (globalThis.settlePanel) settlePanel.settings.choices.values = {}; localStorage.clear()")

    # What is shown

    def figure(self, key, browser=None):
        return (browser or self.browser).run(f"return document.querySelector(\"{row(key)} .figure\").value")

    def status(self, key, browser=None):
        return (browser or self.browser).run(f"return document.querySelector(\"{row(key)} .status\").textContent")

    def progress(self, key, browser=None):
        return (browser or self.browser).run(f"return document.querySelector(\"{row(key)}\").dataset.progress")

    def await_progress(self, key, *names, browser=None, seconds=60):
        (browser or self.browser).wait("return arguments[1].includes(document.querySelector(arguments[0]).dataset.progress)",
                                       row(key), names, seconds=seconds, what=f"{key} is {' or '.join(names)}")

    def await_figure(self, key, text, browser=None):
        (browser or self.browser).wait("return document.querySelector(arguments[0] + ' .figure').value === arguments[1]",
                                       row(key), text, what=f"{key} shows {text}")

    def await_text(self, selector, text, browser=None, seconds=60):
        browser = browser or self.browser
        try:
            browser.wait("return document.querySelector(arguments[0])?.textContent.includes(arguments[1])", selector, text, seconds=seconds)
        except AssertionError:
            shown = browser.run("return document.querySelector(arguments[0])?.textContent ?? null", selector)
            self.fail(f"{selector} does not say {text!r} within {seconds} s, but {shown!r}")

    # Gestures

    def place(self, key, share, browser=None):
        """The position on a slider for a share of its range."""
        box = (browser or self.browser).box(f"{row(key)} .range")
        inset = 18
        return box["x"] + inset + share * (box["width"] - 2 * inset), box["y"] + box["height"] / 2

    def take(self, key, share, browser=None):
        (browser or self.browser).press_at(*self.place(key, share, browser))

    def slide(self, key, share, browser=None):
        (browser or self.browser).slide_to(*self.place(key, share, browser))

    def drag(self, key, shares, seconds=0.02, browser=None):
        """Presses and moves without releasing."""
        browser = browser or self.browser
        places = [self.place(key, share, browser) for share in shares]
        browser.press_at(*places[0])
        for place in places[1:]:
            time.sleep(seconds)
            browser.slide_to(*place)
