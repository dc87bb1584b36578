# Settle
# SPDX-License-Identifier: Apache-2.0
"""axe, Deque's accessibility tester, in all states of the page. It runs where it is installed:
pip install --no-deps axe-playwright-python, which has a newer one than axe-core-python."""

import importlib.util
import os
import unittest

from case import Browsers, Case, row
from stage import HOME


def axe():
    """The path of axe's script: that of AXE, or of an installed package."""
    if os.environ.get("AXE"):
        return os.environ["AXE"]
    for name in ("axe_playwright_python", "axe_core_python"):
        found = importlib.util.find_spec(name)
        path = found and os.path.join(os.path.dirname(found.origin), "axe.min.js")
        if path and os.path.exists(path):
            return path
    return None


def setUpModule():
    if not axe():
        raise unittest.SkipTest("axe is not installed: pip install --no-deps axe-playwright-python")
    Browsers.start()


RUN = """
    return axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then((found) =>
      found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ") + " " + (node.any[0]?.message ?? "")).slice(0, 3).join("; ")}`));"""


class Axe(Case):
    """No violations in any state, on a phone and a desk, in both themes and in forced colors."""

    lines = "scenes:\n  evening: {desk-lamp: {brightness: 40}}\n"
    settings = {"devices": HOME.replace("  name: Desk lamp", "  name: Desk lamp\n  area: Study").replace("  name: Boiler", "  name: Boiler\n  area: Hall") + lines}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(axe(), encoding="utf-8") as file:
            cls.source = file.read() + "; globalThis.axe = axe ?? window.axe;"
        cls.stage.away("attic-fan")
        cls.stage.send({"key": "garden-pump/flow", "set": 7})

    def check(self, **what):
        with self.subTest(**what):
            self.assertEqual(self.browser.run(RUN), [])

    def load(self, path=""):
        self.browser.open(self.stage.url + path)
        self.browser.wait("return document.querySelectorAll('.tile').length >= 8 && document.querySelector('[data-progress=failed]')")
        self.browser.run(self.source)

    def states(self, **what):
        self.load()
        self.check(part="page", **what)
        for device in ("desk-lamp", "boiler", "strip", "hall-blind", "sign", "garden-pump", "attic-fan"):
            self.browser.reveal(row(f"{device}/x"))
            self.check(part=device, **what)
        self.browser.fold()
        self.browser.click("#open-settings")
        self.check(part="settings", **what)
        self.browser.run("settlePanel.settings.dialog.close()")
        self.browser.run("settlePanel.arrange.turn(true); settlePanel.arrange.toggle(document.querySelector('.tile').tile)")
        self.check(part="arranging", **what)
        self.browser.run("settlePanel.arrange.toggle(document.querySelector('.tile').tile); settlePanel.arrange.turn(false)")
        self.browser.run("settlePanel.bar.showLink('locked', 'This token is wrong.')")
        self.browser.wait("return document.querySelector('#login').matches(':modal')")
        self.check(part="token", **what)
        self.load("?kiosk")
        self.check(part="kiosk", **what)

    def test_no_violations_in_any_state(self):
        self.addCleanup(self.browser.resize, 1280, 900)
        self.addCleanup(self.browser.media, "light")
        for width in (360, 1440):
            self.browser.resize(width, 800)
            for scheme in ("light", "dark"):
                self.browser.media(scheme, "reduce")
                self.states(width=width, scheme=scheme)

    def test_no_violations_in_forced_colors(self):
        self.addCleanup(self.browser.media, "light")
        self.browser.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "forced-colors", "value": "active"}, {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.states(colors="forced")
