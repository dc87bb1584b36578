# Settle
# SPDX-License-Identifier: Apache-2.0
"""What one sees of a house of 40 devices in 7 areas: texts, sizes, colors, words."""

import os
import time
import unittest

from case import HERE, Browsers, Case, row
from forty import GROUPS, HOUSE, SCENES, files, states

#: All sizes, zooms, themes and languages; otherwise a part of them.
IS_WHOLE = bool(os.environ.get("WHOLE"))
WIDTHS = (360, 412, 600, 768, 1024, 1280, 1440, 1920)
WALLS = (1024, 1280, 1920, 3840)
ZOOMS = (100, 150, 200) if IS_WHOLE else (100, 200)
THEMES = ("light", "dark") if IS_WHOLE else ("light",)
FRAMES = "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def setUpModule():
    Browsers.start()


class Sight(Case):
    settings = {"devices": files(HOUSE, GROUPS + SCENES), "states": states(HOUSE)}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.stage.deaf = {"pump"}
        cls.stage.send({"key": "pump/flow", "set": 7})
        with open(os.path.join(HERE, "overlaps.js"), encoding="utf-8") as file:
            cls.overlaps = file.read()

    def load(self, path="", language="en"):
        self.browser.open(self.stage.url + path)
        self.browser.wait("return globalThis.settlePanel?.isLoaded")
        if self.browser.run("return document.documentElement.lang") != language:
            self.browser.run("settlePanel.settings.choices.set('language', arguments[0])", language)
            self.browser.open(self.stage.url + path)
        self.browser.wait("return globalThis.settlePanel?.isLoaded && settlePanel.link.state === 'live' && document.querySelector('.tile-body')")

    def setUp(self):
        self.browser.resize(1440, 900)
        self.addCleanup(self.browser.media, "light")
        self.addCleanup(self.browser.run, "localStorage.clear()")
        self.load()

    def tile(self, device, part=""):
        return f"[data-device='{device}'] {part}".strip()

    def text(self, selector):
        return self.browser.run("return document.querySelector(arguments[0])?.innerText ?? null", selector)

    def show(self, width, zoom=100, theme="light"):
        """A page of that width, so high that all tiles are on it."""
        self.browser.resize(width, 12_000 if zoom > 100 or width < 800 else 6000)
        self.browser.media(theme, "reduce")
        self.browser.run("document.documentElement.style.fontSize = arguments[0]", "" if zoom == 100 else f"{zoom}%")
        self.browser.run(FRAMES)
        self.browser.wait("return ![...document.querySelectorAll('.tile')].some((tile) => tile.offsetParent && !tile.querySelector('.tile-body'))")

    def check(self, **what):
        with self.subTest(**what):
            self.assertEqual(self.browser.run(self.overlaps), [])

    # Each text has its own place

    def test_no_text_is_over_another_or_below_a_thumb(self):
        for language in ("en", "de"):
            self.load(language=language)
            for width in WIDTHS:
                for zoom in ZOOMS:
                    for theme in THEMES:
                        self.show(width, zoom, theme)
                        self.check(width=width, zoom=zoom, theme=theme, language=language)
            self.load("?kiosk", language=language)
            for width in WALLS:
                for theme in THEMES:
                    self.show(width, 100, theme)
                    self.check(wall=width, theme=theme, language=language)

    def test_no_text_is_over_another_at_any_value_or_in_trouble(self):
        stage = self.stage
        self.addCleanup(lambda: [stage.report(key, value) for key, value in states(HOUSE).items()])
        self.load("?kiosk")
        keys = ["worktop/brightness", "floor-lamp/brightness", "hood/speed", "pump/flow", "sprinkler/timer"]
        for share in (0, 0.42, 0.5, 0.56, 1):
            for key in keys:
                high = {"hood/speed": 5, "pump/flow": 12, "sprinkler/timer": 1440}.get(key, 100)
                stage.report(key, str(round(high * share)))
            stage.devices.flush()
            time.sleep(0.3)
            for width in WALLS[:3]:
                self.show(width)
                self.check(wall=width, share=share)
        self.load()
        for width in (360, 768, 1440):
            self.show(width)
            self.check(width=width)
        # A change is under way: the device still has its old value.
        stage.slow["worktop/brightness"] = 20
        stage.send({"key": "worktop/brightness", "set": 80, "now": True})
        self.browser.wait("return !document.querySelector(arguments[0]).hidden", self.tile("worktop", ".actual"))
        for width in (360, 1440):
            self.show(width)
            self.check(width=width, actual=True)
        del stage.slow["worktop/brightness"]

    def test_no_text_of_an_open_device_is_over_another(self):
        for language in ("en", "de"):
            self.load(language=language)
            for width in (360, 768) if IS_WHOLE else (360,):
                self.show(width)
                for device, *_ in HOUSE if IS_WHOLE else HOUSE[:8] + HOUSE[27:28] + HOUSE[35:]:
                    self.browser.reveal(row(f"{device}/x"))
                    self.check(width=width, device=device, language=language)
                    self.browser.fold()
