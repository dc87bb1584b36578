# Settle
# SPDX-License-Identifier: Apache-2.0
"""Tiles are moved within their areas, and hidden: by mouse, by touch, by keyboard, for all screens."""

import os
import unittest

from case import HERE, Browsers, Case
from forty import FLOW, POWER, files, sensor, states
from stage import wait_for
from webdriver import KEYS

DELETE = "\ue017"
HOUSE = [(name.lower(), name, "Hall", [POWER], {"power": "false"}) for name in ("Ada", "Ben", "Cleo")] + [
    (name.lower(), name, "Kitchen", [POWER], {"power": "false"}) for name in ("Dora", "Emil", "Fred", "Gus", "Hans", "Ida")] + [
    ("pump", "Pump", "Garden", [FLOW], {"flow": "4.5"}),
    ("leak", "Leak", "Garden", [sensor("water_leak")], {"water_leak": "false"})]
KITCHEN = ["dora", "emil", "fred", "gus", "hans", "ida"]
SHOWN = "return [...document.querySelectorAll('.tile')].filter((tile) => tile.offsetParent).map((tile) => tile.dataset.device)"
FRAMES = "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def setUpModule():
    Browsers.start()


def tile(device, part=""):
    return f"[data-device='{device}'] {part}".strip()


class Arrange(Case):
    settings = {"devices": files(HOUSE), "states": states(HOUSE)}

    def setUp(self):
        self.stage.deaf = {"pump"}
        self.browser.resize(1280, 900)
        self.open(self.browser)
        self.addCleanup(self.browser.media, "light")
        self.addCleanup(self.clean)

    def clean(self):
        """Forgets what was chosen, here and at the gateway; an open page would bring it back."""
        self.browser.open("about:blank")
        self.stage.put("v1/panel", {})
        self.browser.devtools("Storage.clearDataForOrigin", origin="/".join(self.stage.url.split("/")[:3]), storageTypes="local_storage")

    def begin(self, browser=None):
        browser = browser or self.browser
        browser.click("#open-settings")
        browser.run("[...document.querySelectorAll('#settings .button')].find((node) => /Arrange|ordnen/.test(node.textContent)).click()")
        self.assertFalse(browser.run("return document.querySelector('#settings').open"))

    def end(self):
        self.browser.run("document.querySelector('#bar .notice .primary:not(#notice *)').click()")

    def shown(self, browser=None):
        return (browser or self.browser).run(SHOWN)

    def kitchen(self, browser=None):
        return [device for device in self.shown(browser) if device in KITCHEN]

    def middle(self, selector):
        """Where an element is, without scrolling."""
        box = self.browser.run("return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", selector)
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def take(self, device, other):
        """Drags a tile to where another one is, and holds it there."""
        self.browser.wait("return document.getAnimations().length === 0", what="no tile is under way to its place")
        there = self.middle(tile(other, ".tile-grip"))
        self.browser.press_at(*self.middle(tile(device, ".tile-grip")))
        self.browser.slide_to(*there)
        self.browser.run(FRAMES)

    def said(self):
        return self.browser.run("return document.querySelector('#announcements').textContent")

    # The mouse

    def test_a_tile_is_dragged_to_another_place_of_its_area(self):
        self.begin()
        moved = "return [...document.querySelectorAll('.tile')].filter((one) => !/^(|0px|0px 0px)$/.test(one.style.translate)).map((one) => one.dataset.device)"
        self.take("emil", "gus")
        # The others make room.
        self.assertEqual(self.browser.run(moved), ["emil", "fred", "gus"])
        self.browser.lift()
        self.assertEqual(self.browser.run(moved), [])
        self.assertEqual(self.kitchen(), ["dora", "fred", "gus", "emil", "hans", "ida"])
        self.assertEqual(self.said(), "Emil: place 4 of 6")
        # Not beyond it: the areas stay as they were.
        self.take("ida", "ada")
        self.browser.lift()
        self.assertEqual(self.kitchen(), ["ida", "dora", "fred", "gus", "emil", "hans"])
        self.assertEqual(self.shown()[:3], ["ada", "ben", "cleo"])
        self.end()
        wait_for(lambda: self.stage.get("v1/panel").get("order") == ["ida", "dora", "fred", "gus", "emil", "hans"])
        other = Browsers.browser()
        self.addCleanup(other.close)
        self.open(other)
        other.wait("return document.querySelectorAll('.area')[1].querySelector('.tile').dataset.device === 'ida'")
        self.assertEqual(self.kitchen(other), ["ida", "dora", "fred", "gus", "emil", "hans"])

    def test_escape_puts_a_tile_back(self):
        self.begin()
        self.take("dora", "fred")
        self.browser.press(KEYS["escape"])
        self.assertEqual(self.browser.run("return document.querySelectorAll('[data-dragging], .tile[style*=translate]:not([style*=\"translate: none\"])').length"), 0)
        self.browser.lift()
        self.assertEqual(self.kitchen(), KITCHEN)
        # The mode goes on.
        self.take("dora", "emil")
        self.browser.lift()
        self.assertEqual(self.kitchen()[:2], ["emil", "dora"])

    def test_a_drag_at_the_edge_scrolls_the_page(self):
        self.browser.resize(390, 500)
        self.addCleanup(self.browser.resize, 1280, 900)
        self.begin()
        self.browser.run("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })", tile("dora"))
        x, y = self.middle(tile("dora", ".tile-grip"))
        before = self.browser.run("return scrollY")
        self.browser.press_at(x, y)
        self.browser.slide_to(x, 470)
        self.browser.wait("return scrollY > arguments[0] + 30", before, what="the page scrolls")
        # No further than the area goes.
        self.browser.wait("const last = scrollY; return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(scrollY === last))))")
        self.browser.lift()
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('.area')[1].querySelectorAll('.tile')].at(-2).dataset.device"), "dora")

    def test_controls_do_not_react_meanwhile(self):
        self.begin()
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('.tile :is(button, input)')].filter((node) => node.offsetParent && !node.closest('[inert], .tile-tools')).length"), 0)
        for part in (".tile-name", ".tile-grip"):
            self.browser.press_at(*self.middle(tile("hans", part)))
            self.browser.lift()
        self.browser.run(FRAMES)
        self.assertFalse(self.browser.run("return settlePanel.sheet.dialog.open"))
        self.assertEqual(self.stage.told("hans/power"), [])
        self.assertFalse(self.browser.run("return settlePanel.isIdle"))
        self.end()
        self.assertEqual(self.browser.run("return document.activeElement.id"), "open-settings")
        self.assertEqual(self.browser.run("return document.querySelectorAll('.tile-tools, [inert]').length"), 0)
        self.browser.click(tile("hans", "[role=switch]"))
        wait_for(lambda: self.stage.told("hans/power") == ["true"])
        self.stage.report("hans/power", "false")

    # Touch

    def test_a_touch_drags_a_tile_by_its_handle_and_scrolls_elsewhere(self):
        self.browser.resize(390, 900, touch=True)
        self.addCleanup(self.browser.resize, 1280, 900)
        self.begin()
        self.assertEqual(self.browser.run("return ['.tile-grip', '.tile'].map((part) => getComputedStyle(document.querySelector(part)).touchAction)"), ["none", "auto"])
        for part, expected in ((".tile-head", KITCHEN), (".tile-grip", ["emil", "fred", "dora", "gus", "hans", "ida"])):
            self.browser.touch("touchStart", self.middle(tile("dora", part)))
            x, y = self.middle(tile("dora", part))
            self.browser.touch("touchMove", (x, y + 40))
            self.browser.touch("touchMove", self.middle(tile("fred", part)))
            self.browser.run(FRAMES)
            self.browser.touch("touchEnd")
            self.browser.wait("return !settlePanel.arrange.drag")
            self.assertEqual(self.kitchen(), expected, part)

    # The keyboard

    def test_keys_move_and_hide_the_tile_whose_handle_has_the_focus(self):
        self.begin()
        self.assertEqual(self.browser.run("return document.activeElement.ariaLabel"), "Move Ada")
        self.browser.press(KEYS["right"])
        self.assertEqual(self.shown()[:3], ["ben", "ada", "cleo"])
        self.assertEqual(self.said(), "Ada: place 2 of 3")
        self.assertEqual(self.browser.run("return document.activeElement.ariaLabel"), "Move Ada")
        self.browser.press(KEYS["left"], KEYS["left"])
        self.assertEqual(self.shown()[:3], ["ada", "ben", "cleo"])
        # Up and down are rows.
        span = self.browser.run("return settlePanel.page.sections[1].place.span")
        self.browser.run("document.querySelector(arguments[0]).focus()", tile("dora", ".tile-grip"))
        self.browser.press(KEYS["down"])
        self.assertEqual(self.kitchen().index("dora"), span if span < 6 else 0)
        self.browser.press(KEYS["up"])
        self.assertEqual(self.kitchen(), KITCHEN)
        eye = "return document.querySelector(arguments[0]).ariaLabel"
        for key, said, label in ((DELETE, "Dora: hidden", "Show Dora"), ("h", "Dora: shown", "Hide Dora")):
            self.browser.press(key)
            self.assertEqual((self.said(), self.browser.run(eye, tile("dora", ".tile-eye"))), (said, label))

    # What is hidden

    def hide(self, *devices):
        self.begin()
        for device in devices:
            self.browser.click(tile(device, ".tile-eye"))
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('[data-hidden]')].map((one) => one.dataset.device).sort()"), sorted(devices))
        # Still there, to be shown again.
        self.assertEqual(len(self.shown()), len(HOUSE))
        self.end()

    def test_what_is_hidden_is_on_no_screen_and_found_by_the_search(self):
        self.hide("emil", "ada", "ben", "cleo")
        self.assertEqual(self.shown(), ["dora", "fred", "gus", "hans", "ida", "pump", "leak"])
        # An area of which nothing is left has no link.
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('.area-link')].filter((link) => link.offsetParent).map((link) => link.textContent)"), ["Home", "Kitchen", "Garden"])
        other = Browsers.browser()
        self.addCleanup(other.close)
        self.open(other)
        other.wait(f"return (() => {{ {SHOWN} }})().length === 7")
        self.browser.type("#filter", "emil")
        self.assertEqual(self.shown(), ["emil"])
        self.browser.run("const f = document.querySelector('#filter'); f.value = ''; f.dispatchEvent(new Event('input'))")
        # The arrows of an open device pass over it.
        self.browser.click(tile("fred", ".tile-name"))
        self.browser.click("#sheet [aria-label='Move earlier']")
        self.browser.fold()
        self.assertEqual(self.kitchen(), ["fred", "dora", "gus", "hans", "ida"])
        self.begin()
        self.browser.click(tile("emil", ".tile-eye"))
        self.end()
        self.assertEqual(self.kitchen(), ["fred", "dora", "emil", "gus", "hans", "ida"])
        other.wait(f"return (() => {{ {SHOWN} }})().length === 8")

    def test_an_alarm_and_a_failure_are_shown_all_the_same(self):
        self.addCleanup(self.stage.report, "leak/water_leak", "false")
        self.hide("pump", "leak")
        is_seen = "return Boolean(document.querySelector(arguments[0]).offsetParent)"
        self.assertNotIn("leak", self.shown())
        self.stage.report("leak/water_leak", "true")
        self.browser.wait(is_seen, tile("leak"))
        self.stage.report("leak/water_leak", "false")
        self.browser.wait(is_seen.replace("Boolean", "!"), tile("leak"))
        self.stage.send({"key": "pump/flow", "set": 7, "now": True})
        self.browser.wait(is_seen, tile("pump"))
        self.browser.wait("return document.querySelector(arguments[0]).dataset.state === 'failed'", tile("pump"))
        self.open(self.browser)
        self.browser.wait(is_seen, tile("pump"))
        # It stays until what follows is over.
        ends = "const key = settlePanel.house.find('pump/flow'); Object.assign(key, { phase: 'confirmed', failure: null, endedAt: performance.now() - arguments[0] }); settlePanel.draw(settlePanel.dirty.add(key))"
        self.browser.run(ends, 0)
        self.assertTrue(self.browser.run(is_seen, tile("pump")))
        self.browser.run(ends, 60_000)
        self.assertFalse(self.browser.run(is_seen, tile("pump")))

    # Looks

    def test_the_mode_is_accessible_and_no_text_is_over_another(self):
        scripts = {}
        for name in ("checks", "overlaps"):
            with open(os.path.join(HERE, f"{name}.js"), encoding="utf-8") as file:
                scripts[name] = file.read()
        self.browser.run("settlePanel.settings.choices.set('language', 'de')")
        self.open(self.browser)
        self.begin()
        self.browser.click(tile("emil", ".tile-eye"))
        for width in (360, 1440):
            for scheme in ("light", "dark"):
                self.browser.resize(width, 2000)
                self.browser.media(scheme, "reduce")
                self.browser.run(FRAMES)
                with self.subTest(width=width, scheme=scheme):
                    self.assertEqual(self.browser.run(scripts["checks"])["problems"], [])
                    self.assertEqual(self.browser.run(scripts["overlaps"]), [])


if __name__ == "__main__":
    unittest.main()
