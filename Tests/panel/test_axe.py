# Settle
# SPDX-License-Identifier: Apache-2.0
"""axe, Deque's accessibility tester, in all states of the page. It runs where it is installed: pip install axe-core-python"""

import importlib.util
import os
import unittest

from case import Browsers, Case, row


def axe():
    found = importlib.util.find_spec("axe_core_python")
    folder = os.path.dirname(found.origin) if found else os.environ.get("AXE", "")
    path = os.path.join(folder, "axe.min.js")
    return path if folder and os.path.exists(path) else None


def setUpModule():
    if not axe():
        raise unittest.SkipTest("axe is not installed: pip install axe-core-python")
    Browsers.start()


RUN = """
    return axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then((found) =>
      found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ") + " " + (node.any[0]?.message ?? "")).slice(0, 3).join("; ")}`));"""


class Axe(Case):
    """No violations on the page, in sheets, in settings, with failures, and in forced colors."""

    def test_no_violations(self):
        with open(axe(), encoding="utf-8") as file:
            source = file.read()
        self.stage.away("attic-fan")
        self.addCleanup(self.stage.away, "attic-fan", False)
        self.stage.send({"key": "garden-pump/flow", "set": 7})
        self.browser.wait("return document.querySelector('[data-progress=failed]')")
        for width in (360, 1440):
            self.browser.resize(width, 800)
            for scheme in ("light", "dark"):
                self.browser.media(scheme, "reduce")
                self.open(self.browser)
                self.browser.run(source + "; globalThis.axe = axe ?? window.axe;")
                with self.subTest(width=width, scheme=scheme):
                    self.assertEqual(self.browser.run(RUN), [])
                for device in ("desk-lamp", "boiler", "strip", "hall-blind", "sign", "garden-pump"):
                    with self.subTest(width=width, scheme=scheme, device=device):
                        self.browser.run("return document.querySelector(arguments[0])", row(f"{device}/x"))
                        self.assertEqual(self.browser.run(RUN), [])
                self.browser.fold()
                with self.subTest(width=width, scheme=scheme, part="settings"):
                    self.browser.click("#open-settings")
                    self.assertEqual(self.browser.run(RUN), [])
        self.browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
        self.open(self.browser)
        self.browser.run(source + "; globalThis.axe = axe ?? window.axe;")
        with self.subTest(part="forced colors"):
            self.assertEqual(self.browser.run(RUN), [])
        self.browser.media("light")
        self.browser.resize(1280, 900)
