# Settle
# SPDX-License-Identifier: Apache-2.0
"""The wall display: its clock, pages, way home, night, and the picture that moves. The page's clock is one that tests advance."""

import os
import time

from case import HERE, Browsers, Case, row
from forty import GROUPS, HOUSE, SCENES, files, states
from stage import wait_for
from webdriver import KEYS

SIZES = ((1280, 800), (1920, 1080), (3840, 2160))
FRAMES = "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

# Replaces the clock of the page: it begins at a time of day, and `clock.advance(ms)` lets time pass at once. Timers of more than 15 s
# wait for that; those of the connection, and shorter ones, stay as they are.
CLOCK = """
    (() => {
      const [Real, later, cancel, now] = [Date, setTimeout, clearTimeout, performance.now.bind(performance)];
      const base = new Real(2026, 10, 27, HOUR, MINUTE, 5) - Real.now();
      const timers = new Map();
      let [passed, number] = [0, 1e9];
      globalThis.Date = class extends Real {
        constructor(...parts) { super(...(parts.length > 0 ? parts : [Real.now() + base + passed])); }
        static now() { return Real.now() + base + passed; }
      };
      performance.now = () => now() + passed;
      globalThis.setTimeout = (call, delay, ...rest) => {
        if (!(delay > 15_000) || delay === 40_000) return later(call, delay, ...rest);
        timers.set(number += 1, { due: performance.now() + delay, call });
        return number;
      };
      globalThis.clearTimeout = (id) => timers.delete(id) || cancel(id);
      globalThis.clock = { advance(milliseconds) {
        const end = passed + milliseconds;
        for (let count = 0; ; count += 1) {
          const [id, next] = [...timers].sort((a, b) => a[1].due - b[1].due)[0] ?? [];
          if (!next || next.due - now() > end) { passed = end; return count; }
          passed = Math.max(passed, next.due - now());
          timers.delete(id);
          next.call();
        }
      } };
    })();"""


def setUpModule():
    Browsers.start()


class Wall(Case):
    settings = {"devices": files(HOUSE, GROUPS + SCENES), "states": states(HOUSE)}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(os.path.join(HERE, "overlaps.js"), encoding="utf-8") as file:
            cls.overlaps = file.read()
        with open(os.path.join(HERE, "checks.js"), encoding="utf-8") as file:
            cls.checks = file.read()

    def setUp(self):
        self.browser.resize(1280, 800)
        self.addCleanup(lambda: [self.stage.report(key, value) for key, value in states(HOUSE).items()])
        self.addCleanup(self.browser.media, "light")

    def load(self, path="?kiosk", at=(12, 0), language="en"):
        browser = self.browser
        script = CLOCK.replace("HOUR", str(at[0])).replace("MINUTE", str(at[1]))
        browser.open_with(script, self.stage.url + path, language)
        browser.wait("return globalThis.settlePanel?.isLoaded && settlePanel.link.state === 'live' && document.querySelector('.tile-body')")
        if path == "?kiosk":
            browser.wait("return settlePanel.wall?.pages.length > 0")
        browser.run(FRAMES)

    def advance(self, seconds):
        return self.browser.run("return clock.advance(arguments[0] * 1000)", seconds)

    def page(self):
        return self.browser.run("return settlePanel.wall.at")

    def is_dark(self):
        return self.browser.run("return document.querySelector('.wall-night')?.offsetParent !== undefined && !document.querySelector('.wall-night').hidden")

    def shown(self):
        return self.browser.run("return [...document.querySelectorAll('.tile')].filter((tile) => tile.offsetParent).map((tile) => tile.dataset.device)")

    def tile(self, device, part=""):
        return f"[data-device='{device}'] {part}".strip()

    def middle(self, selector):
        box = self.browser.box(selector)
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def tap(self, selector):
        self.browser.press_at(*self.middle(selector))
        self.browser.lift()

    def swipe(self, selector, by):
        x, y = self.middle(selector)
        self.browser.press_at(x, y)
        self.browser.slide_to(x + by / 2, y)
        self.browser.slide_to(x + by, y)
        self.browser.lift()

    # The clock

    def test_a_clock_shows_the_time_of_day_and_wakes_the_page_once_a_minute(self):
        text = "return document.querySelector('.wall-clock').textContent.replace(/\\s/g, ' ')"
        self.load(at=(20, 41))
        self.assertEqual(self.browser.run(text), "8:41 PM")
        self.assertGreaterEqual(self.browser.run("return parseFloat(getComputedStyle(document.querySelector('.wall-clock')).fontSize)"), 40)
        self.advance(60)
        self.assertEqual(self.browser.run(text), "8:42 PM")
        self.advance(60)
        self.assertLessEqual(self.advance(3600), 61)
        self.assertEqual(self.browser.run(text), "9:43 PM")
        self.load(at=(20, 41), language="de")
        self.assertEqual(self.browser.run(text), "20:41")

    # Pages

    def test_all_devices_are_on_pages_that_fit_the_screen(self):
        found = """
            const tiles = [...document.querySelectorAll('.tile')].filter((tile) => tile.offsetParent);
            const figures = [...document.querySelectorAll('.tile :is(.wide-on, .wide-off, .thick-value, .tile-figure, .reading-cell b)')].filter((node) => node.offsetParent && !('long' in node.dataset));
            const { scrollWidth, scrollHeight } = document.documentElement;
            const beyond = tiles.filter((tile) => { const box = tile.getBoundingClientRect(); return box.bottom > innerHeight || box.right > innerWidth || box.top < 0 || box.left < 0; });
            return { devices: tiles.map((tile) => tile.dataset.device), beyond: beyond.map((tile) => tile.dataset.device), fits: scrollWidth <= innerWidth && scrollHeight <= innerHeight,
              figure: Math.min(...figures.map((node) => parseFloat(getComputedStyle(node).fontSize))), columns: new Set(tiles.map((tile) => tile.offsetLeft)).size };"""
        for language in ("en", "de"):
            for width, height in SIZES:
                self.browser.resize(width, height)
                self.browser.media("light", "reduce")
                self.load(language=language)
                pages = self.browser.run("return settlePanel.wall.pages.length")
                self.assertEqual(pages, {1280: 4, 1920: 2, 3840: 1}[width])
                self.assertEqual(self.browser.run("return document.querySelectorAll('#areas button').length"), pages if pages > 1 else 0)
                devices = []
                for number in range(pages):
                    self.browser.run("settlePanel.wall.turn(arguments[0])", number)
                    self.browser.run(FRAMES)
                    with self.subTest(width=width, page=number, language=language):
                        page = self.browser.run(found)
                        self.assertEqual((page["fits"], page["beyond"]), (True, []))
                        self.assertGreaterEqual(page["figure"], 40)
                        self.assertLessEqual(page["columns"], 5)
                        self.assertEqual(self.browser.run(self.overlaps), [])
                        self.assertEqual(self.browser.run(self.checks)["problems"], [])
                        devices += page["devices"]
                self.assertEqual(sorted(devices), sorted([device for device, *_ in HOUSE] + ["all-ceilings"]))

    def test_an_area_that_is_too_large_for_a_page_is_on_several(self):
        self.browser.resize(1280, 420)
        self.load()
        names = self.browser.run("return [...document.querySelectorAll('#areas button')].map((button) => button.textContent)")
        self.assertEqual(names[:2], ["Living room", "Living room 2"])
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(self.shown()), 8)
        self.browser.click("#areas button:nth-child(2)")
        self.assertEqual(self.shown(), ["living-motion"])

    def test_fingers_keys_and_buttons_turn_the_page(self):
        self.load()
        current = "return [...document.querySelectorAll('#areas button')].map((button) => button.ariaCurrent === 'page' || button.getAttribute('aria-current') === 'page')"
        self.assertEqual(self.browser.run(current), [True, False, False, False])
        self.browser.press(KEYS["right"])
        self.assertEqual(self.page(), 1)
        self.assertIn("coffee", self.shown())
        self.browser.press(KEYS["left"], KEYS["left"])
        self.assertEqual(self.page(), 0)
        self.browser.click("#areas button:last-child")
        self.assertEqual(self.browser.run(current), [False, False, False, True])
        # A finger that moves sideways over a switch presses nothing.
        self.browser.run("settlePanel.wall.turn(0)")
        told = len(self.stage.told("television/power"))
        self.swipe(self.tile("television", ".switch"), -110)
        self.assertEqual(self.page(), 1)
        time.sleep(0.5)
        self.swipe(self.tile("coffee", ".tile-title"), 110)
        self.assertEqual(self.page(), 0)
        self.assertEqual(self.browser.run("return settlePanel.sheet.dialog.open"), False)
        # A slider is no place to turn the page.
        self.swipe(self.tile("floor-lamp", ".range"), -90)
        self.assertEqual(self.page(), 0)
        self.assertEqual(len(self.stage.told("television/power")), told)
        self.assertTrue(self.browser.run("return document.querySelector(arguments[0]).ariaChecked === 'true'", self.tile("television", ".switch")))
        # The same with touches, of which a browser makes pans.
        self.addCleanup(self.browser.resize, 1280, 800)
        self.browser.resize(1280, 800, touch=True)
        x, y = self.middle(self.tile("television", ".switch"))
        self.browser.touch("touchStart", (x, y))
        for by in (20, 60, 110):
            self.browser.touch("touchMove", (x - by, y + by / 20))
        self.browser.touch("touchEnd")
        self.browser.wait("return settlePanel.wall.at === 1", seconds=5)
        self.assertEqual(len(self.stage.told("television/power")), told)

    # The way home

    def test_it_goes_home_when_nobody_touches_it(self):
        self.load()
        self.browser.click("#areas button:last-child")
        self.browser.run("settlePanel.page.open(settlePanel.house.devices.find((device) => device.id === 'shed'))")
        self.advance(55)
        self.assertTrue(self.browser.run("return settlePanel.sheet.dialog.open"))
        self.advance(10)
        self.browser.wait("return !document.querySelector('dialog[open]') && location.hash === ''", seconds=5)
        self.assertEqual(self.page(), 0)
        # A touch begins the wait again; a filter ends with it.
        self.browser.run("[...document.querySelectorAll('#sums button')].find((chip) => chip.textContent === '6 lamps on').click()")
        self.advance(50)
        self.browser.press(KEYS["tab"])
        self.advance(50)
        self.assertEqual(len(self.shown()), 6)
        self.advance(15)
        self.assertGreater(len(self.shown()), 6)
        # A question that nobody answered is none any more.
        self.browser.run("settlePanel.wall.turn(2)")
        self.browser.click(self.tile("front-door", ".switch"))
        self.assertTrue(self.browser.run("return document.querySelector('#ask').open"))
        self.advance(65)
        self.assertFalse(self.browser.run("return document.querySelector('#ask').open"))
        self.assertEqual(self.stage.told("front-door/lock"), [])

    def test_it_does_not_go_home_while_a_finger_is_down_or_something_is_typed(self):
        self.load()
        self.browser.press(KEYS["right"])
        x, y = self.middle(self.tile("worktop", ".range"))
        self.browser.press_at(x, y)
        self.advance(300)
        self.assertEqual(self.page(), 1)
        self.browser.slide_to(x + 40, y)
        self.browser.lift()
        self.advance(65)
        self.assertEqual(self.page(), 0)
        wait_for(lambda: self.stage.told("worktop/brightness"), what="the command of the finger")
        for key, text in (("hall-sign/message", "Back at six"), ("worktop/brightness", "33")):
            told = len(self.stage.told(key))
            field = f"{row(key)} input:not([type=range])"
            self.browser.find(field)
            self.browser.run("const field = document.querySelector(arguments[0]); field.focus(); field.select()", field)
            self.browser.type(field, text)
            self.advance(300)
            self.assertTrue(self.browser.run("return settlePanel.sheet.dialog.open"), key)
            self.assertIn(text, self.browser.run("return document.querySelector(arguments[0]).value", field))
            self.assertEqual(len(self.stage.told(key)), told)
            self.browser.type(field, KEYS["enter"])
            self.advance(65)
            self.browser.wait("return !settlePanel.sheet.dialog.open && location.hash === ''", seconds=5)
            self.browser.wait("return settlePanel.link.outbox.isEmpty")

    # The night

    def test_it_is_dark_at_night_and_the_first_touch_changes_nothing(self):
        self.load(at=(21, 57))
        self.advance(100)
        self.assertFalse(self.is_dark())
        self.advance(100)
        self.assertTrue(self.is_dark())
        switch = self.tile("television", ".switch")
        told = len(self.stage.told("television/power"))
        self.tap(switch)
        self.browser.wait("return document.querySelector('.wall-night').hidden", seconds=5)
        # As a finger does it: a browser makes a click of it.
        self.advance(65)
        self.assertTrue(self.is_dark())
        x, y = self.middle(switch)
        self.browser.resize(1280, 800, touch=True)
        self.addCleanup(self.browser.resize, 1280, 800)
        self.browser.touch("touchStart", (x, y))
        self.browser.touch("touchEnd")
        self.browser.wait("return document.querySelector('.wall-night').hidden", seconds=5)
        time.sleep(0.5)
        self.browser.resize(1280, 800)
        # A key as well.
        self.browser.run("document.querySelector(arguments[0]).focus()", switch)
        self.advance(65)
        self.assertTrue(self.is_dark())
        self.browser.press(KEYS["space"])
        self.assertFalse(self.is_dark())
        self.assertEqual(len(self.stage.told("television/power")), told)
        self.assertEqual(self.browser.run("return document.querySelector(arguments[0]).ariaChecked", switch), "true")
        # The next one is for the lamp.
        self.tap(switch)
        self.browser.wait("return document.querySelector(arguments[0]).ariaChecked === 'false'", switch, seconds=5)

    def test_the_morning_ends_the_night(self):
        self.load(at=(5, 50))
        self.advance(65)
        self.assertTrue(self.is_dark())
        self.advance(480)
        self.assertTrue(self.is_dark())
        self.advance(60)
        self.assertFalse(self.is_dark())
        self.advance(3600)
        self.assertFalse(self.is_dark())

    def test_failures_and_alarms_wake_it(self):
        self.stage.deaf = {"pump"}
        self.load(at=(23, 0))
        self.advance(65)
        self.assertTrue(self.is_dark())
        self.stage.send({"key": "pump/flow", "set": 7, "now": True})
        self.browser.wait("return document.querySelector('.wall-night').hidden", what="a failure wakes it")
        self.advance(65)
        self.assertTrue(self.is_dark())
        # An alarm keeps it awake until somebody touches it.
        self.stage.report("dishwasher-leak/water_leak", "true")
        self.browser.wait("return document.querySelector('.wall-night').hidden", what="a leak wakes it")
        self.advance(600)
        self.assertFalse(self.is_dark())
        self.tap("main .sums")
        self.advance(65)
        self.assertTrue(self.is_dark())
        # Smoke is another alarm.
        self.stage.report("kitchen-smoke/smoke", "true")
        self.browser.wait("return document.querySelector('.wall-night').hidden", what="smoke wakes it")

    # The picture moves

    def test_the_picture_moves_by_a_few_pixels(self):
        place = "return document.body.style.translate.split(' ').map(parseFloat)"
        self.load()
        places = set()
        for _ in range(12):
            places.add(tuple((self.browser.run(place) + [0])[:2]))
            self.advance(300)
        self.assertGreater(len(places), 5)
        self.assertTrue(all(abs(x) <= 3 and abs(y) <= 3 for x, y in places), places)
        # It jumps, and nothing of it moves by itself.
        self.assertEqual(self.browser.run("return document.body.getAnimations().length"), 0)

    def test_an_ordinary_page_has_none_of_it(self):
        self.load("", at=(23, 0))
        self.assertEqual(self.advance(3600), 0)
        self.assertEqual(self.browser.run("return [document.querySelector('.wall-clock, .wall-night'), document.body.style.translate, settlePanel.wall ?? null]"), [None, "", None])
