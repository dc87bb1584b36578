# Settle
# SPDX-License-Identifier: Apache-2.0
"""What one sees of a house of 40 devices in 7 areas: texts, sizes, colors, words."""

import os
import time
import unittest

from case import HERE, Browsers, Case, row
from forty import GROUPS, HOUSE, SCENES, files, states
from stage import wait_for

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
        return self.browser.run("return document.querySelector(arguments[0])?.innerText.trim() ?? null", selector)

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
        stage.deaf.add("worktop")
        stage.send({"key": "worktop/brightness", "set": 80, "now": True})
        self.browser.wait("return !document.querySelector(arguments[0]).hidden", self.tile("worktop", ".actual"))
        for width in (360, 1440):
            self.show(width)
            self.check(width=width, actual=True)
        stage.deaf.discard("worktop")
        stage.report("worktop/brightness", "80")

    def test_no_text_of_an_open_device_is_over_another(self):
        for language in ("en", "de"):
            self.load(language=language)
            for width in (360, 768) if IS_WHOLE else (360,):
                self.show(width)
                for device, *_ in HOUSE if IS_WHOLE else HOUSE[:8] + HOUSE[27:28] + HOUSE[35:]:
                    self.browser.reveal(row(f"{device}/x"))
                    self.check(width=width, device=device, language=language)
                    self.browser.fold()

    def test_the_colors_and_names_of_the_house_are_accessible(self):
        with open(os.path.join(HERE, "checks.js"), encoding="utf-8") as file:
            checks = file.read()
        self.addCleanup(lambda: [self.stage.report(key, value) for key, value in states(HOUSE).items()])
        self.stage.report("dishwasher-leak/water_leak", "true")
        self.stage.report("front-door/lock", "UNLOCKED")
        self.sums(["Leak at the dishwasher: Wet", "Kitchen Window open", "Front door unlocked", "6 lamps on", "20.8°", "Garden Shed battery 8 %"])
        for width in (360, 1440):
            for theme in ("light", "dark"):
                self.show(width, theme=theme)
                with self.subTest(width=width, theme=theme):
                    self.assertEqual(self.browser.run(checks)["problems"], [])

    # The open device

    def sheet(self, device):
        self.browser.reveal(row(f"{device}/x"))

    def test_each_device_opens_at_its_beginning(self):
        self.browser.resize(360, 600)
        self.sheet("floor-lamp")
        self.browser.run("settlePanel.sheet.dialog.scrollTop = 300")
        self.browser.fold()
        self.sheet("living-radiator")
        self.assertEqual(self.browser.run("return settlePanel.sheet.dialog.scrollTop"), 0)
        # Also from one to the next.
        self.browser.run("settlePanel.sheet.dialog.scrollTop = 300")
        self.sheet("floor-lamp")
        self.assertEqual(self.browser.run("return settlePanel.sheet.dialog.scrollTop"), 0)
        self.browser.fold()

    def test_room_for_falling_changes_is_only_where_something_falls(self):
        self.addCleanup(self.stage.send, {"key": "floor-lamp/color_temp", "set": 400, "now": True})
        self.sheet("floor-lamp")
        heights = "return [...document.querySelectorAll('#sheet .fall')].map((node) => node.offsetHeight)"
        self.assertEqual(self.browser.run(heights), [0, 0])
        # The slider stays below the finger.
        box = self.browser.box(f"{row('floor-lamp/color_temp')} .range")
        more = f"{row('floor-lamp/color_temp')} [aria-label$=': more']"
        before = self.browser.run("return document.querySelector(arguments[0]).getBoundingClientRect().top", more)
        self.browser.press_at(box["x"] + box["width"] * 0.3, box["y"] + box["height"] / 2)
        self.browser.slide_to(box["x"] + box["width"] * 0.4, box["y"] + box["height"] / 2)
        self.browser.wait(heights + ".join() !== '0,0'")
        self.assertEqual([height > 0 for height in self.browser.run(heights)], [False, True])
        self.assertEqual(self.browser.run("return document.querySelector(arguments[0]).getBoundingClientRect().top", more), before)
        self.browser.lift()
        self.browser.fold()

    def test_a_history_names_its_property(self):
        self.sheet("living-air")
        self.await_text(".history-title", "Temperature, reported")
        self.browser.fold()

    def test_a_name_of_another_direction_is_beside_its_icon_like_its_state(self):
        self.browser.find(self.tile("hall-sign"))
        name, state = self.browser.run("""
            const left = (node) => { const range = document.createRange(); range.selectNodeContents(node); return range.getBoundingClientRect().left; };
            const tile = document.querySelector(arguments[0]);
            tile.scrollIntoView();
            return [left(tile.querySelector('.tile-title')), left(tile.querySelector('.tile-state'))];""", self.tile("hall-sign"))
        self.assertLess(abs(name - state), 3)

    # One grid, and light leads

    def test_all_tiles_have_one_width_and_a_wall_shows_many(self):
        widths = "return [...new Set([...document.querySelectorAll('.tile')].map((tile) => Math.round(tile.getBoundingClientRect().width)))]"
        for width in (360, 768, 1024, 1440, 1920, 2560):
            self.show(width)
            found = self.browser.run(widths)
            self.assertLessEqual(max(found) - min(found), 1, (width, found))
        self.load("?kiosk")
        self.browser.resize(1920, 1080)
        self.browser.run(FRAMES)
        seen = self.browser.run("return [...document.querySelectorAll('.tile')].filter((tile) => tile.getBoundingClientRect().bottom <= innerHeight).length")
        self.assertGreaterEqual(seen, 24)

    def test_light_is_the_loudest_on_the_page(self):
        loudness = """
            const [r, g, b] = getComputedStyle(document.querySelector(arguments[0])).backgroundColor.match(/[\\d.]+/g).map(Number);
            const scale = getComputedStyle(document.querySelector(arguments[0])).backgroundColor.startsWith('color') ? 255 : 1;
            return (Math.max(r, g, b) - Math.min(r, g, b)) * scale;"""
        for theme in ("light", "dark"):
            self.show(1440, theme=theme)
            lamp = self.browser.run(loudness, self.tile("floor-lamp", ".thick-lit"))
            for quiet in (self.tile("television", ".switch-track"), self.tile("hood", ".thick-lit"), self.tile("front-door", ".switch-track")):
                self.assertLess(self.browser.run(loudness, quiet), lamp / 2, (theme, quiet))

    # Color temperature

    def test_more_kelvin_is_to_the_right_and_keys_are_the_same_steps(self):
        key = "desk-lamp/color_temp"
        self.addCleanup(self.stage.report, key, "200")
        place = f"return document.querySelector(\"{row(key)} .thick-thumb\").getBoundingClientRect().left"
        start, before = int(self.figure(key)), self.browser.run(place)
        self.assertEqual(start, 5000)
        self.browser.click(f"{row(key)} [aria-label$=': more']")
        self.await_figure(key, "5102")
        self.assertGreater(self.browser.run(place), before)
        self.browser.run(f"document.querySelector(\"{row(key)} .range\").focus()")
        self.browser.press("\ue012")
        self.await_figure(key, "5000")
        self.browser.press("\ue014", "\ue014")
        self.await_figure(key, "5208")
        # A finger is where the value is.
        self.drag(key, [0.1, 0.0])
        self.browser.lift()
        self.await_figure(key, "2000")
        self.browser.fold()

    # Words, numbers, names

    def test_tiles_speak_as_people_do(self):
        said = {device: self.text(self.tile(device, ".tile-state")) for device in ("floor-lamp", "living-radiator", "shed", "all-ceilings", "living-blind")}
        self.assertEqual(said["floor-lamp"], "On")
        self.assertEqual(said["living-radiator"], "Now 20.8 °C · Heat")
        self.assertEqual(self.text(self.tile("living-radiator", ".tile-figure")), "21.0°")
        self.assertEqual(said["living-blind"], "35 % open")
        self.assertEqual(said["all-ceilings"], "1 of 3 on")
        self.stage.report("bedroom-ceiling/power", "true")
        self.addCleanup(self.stage.report, "bedroom-ceiling/power", "false")
        self.browser.run("document.querySelector(arguments[0]).scrollIntoView()", self.tile("all-ceilings"))
        self.await_text(self.tile("all-ceilings", ".tile-state"), "2 of 3 on")

    def test_german_words_have_german_numbers(self):
        self.load(language="de")
        self.assertEqual(self.text(self.tile("living-radiator", ".tile-figure")), "21,0°")
        self.assertEqual(self.text(self.tile("living-radiator", ".tile-state")), "Jetzt 20,8 °C · Heizen")
        self.assertEqual(self.browser.run("return import(new URL('values.js', document.querySelector('script[type=module]').src)).then((m) => [m.readNumber('21,5'), m.readNumber('1.500')])"), [21.5, None])

    def test_names_carry_their_room_where_others_have_the_same(self):
        names = self.browser.run("return [...document.querySelectorAll('.tile button, .tile input, .tile select')].filter((node) => node.offsetParent).map((node) => node.ariaLabel)")
        self.assertEqual(len(names), len(set(names)))
        for name in ("Kitchen Ceiling, Brightness", "Bedroom Ceiling, Brightness", "Worktop light, Brightness"):
            self.assertIn(name, names)

    def test_a_search_finds_what_is_typed_without_accents(self):
        shown = "return [...document.querySelectorAll('.tile')].filter((tile) => tile.offsetParent).map((tile) => tile.dataset.device)"
        for text in ("muhle", "mühle", "muehle", "MÜHLE"):
            self.browser.run("const f = document.querySelector('#filter'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))", text)
            self.assertEqual(self.browser.run(shown), ["coffee"], text)

    # What things are

    def test_doors_leaks_and_motion_say_what_they_are(self):
        said = {device: self.text(self.tile(device, "b")) for device in ("balcony-door", "kitchen-window", "dishwasher-leak", "kitchen-smoke", "living-motion", "hall-motion")}
        self.assertEqual(said, {"balcony-door": "Closed", "kitchen-window": "Open", "dishwasher-leak": "Dry", "kitchen-smoke": "No smoke", "living-motion": "Motion", "hall-motion": "No motion"})
        notice = "return document.querySelector(arguments[0]).dataset.notice ?? null"
        icon = "return document.querySelector(arguments[0] + ' .tile-icon path').getAttribute('d')"
        self.assertEqual([self.browser.run(notice, self.tile(device)) for device in ("balcony-door", "kitchen-window", "shed", "living-motion")], [None, "open", "low", None])
        self.assertIn("Battery 8 %", self.text(self.tile("shed", ".tile-state")))
        dry = self.browser.run(icon, self.tile("dishwasher-leak"))
        self.assertNotEqual(dry, self.browser.run(icon, self.tile("kitchen-smoke")))
        closed = self.browser.run(icon, self.tile("balcony-door"))
        self.addCleanup(self.stage.report, "dishwasher-leak/water_leak", "false")
        self.addCleanup(self.stage.report, "balcony-door/contact", "true")
        self.stage.report("dishwasher-leak/water_leak", "true")
        self.stage.report("balcony-door/contact", "false")
        self.await_text(self.tile("dishwasher-leak", "b"), "Wet")
        self.assertEqual(self.browser.run(notice, self.tile("dishwasher-leak")), "alarm")
        self.browser.wait("return document.querySelector(arguments[0]).dataset.notice === 'open'", self.tile("balcony-door"))
        self.assertNotEqual(self.browser.run(icon, self.tile("balcony-door")), closed)

    def test_a_lock_asks_before_it_unlocks(self):
        switch = self.tile("front-door", "[role=switch]")
        self.assertEqual(self.text(self.tile("front-door", ".tile-state")), "Locked")
        told = len(self.stage.told("front-door/lock"))
        self.browser.click(switch)
        self.browser.wait("return document.querySelector('#ask').open")
        self.assertEqual(self.text("#ask-text"), "Unlock Front door?")
        self.assertEqual(self.browser.run("return document.activeElement.textContent"), "Cancel")
        self.browser.press("\ue00c")
        self.browser.wait("return !document.querySelector('#ask').open")
        self.assertEqual(self.browser.run("return document.querySelector(arguments[0]).ariaChecked", switch), "true")
        self.assertEqual(len(self.stage.told("front-door/lock")), told)
        # It reports in other words than those of its commands.
        self.stage.deaf.add("front-door")
        self.addCleanup(self.stage.deaf.discard, "front-door")
        self.browser.click(switch)
        self.browser.click("#ask-yes")
        wait_for(lambda: self.stage.told("front-door/lock")[told:] == ["UNLOCK"])
        self.stage.report("front-door/lock", "UNLOCKED")
        self.await_text(self.tile("front-door", ".tile-state"), "Unlocked")
        self.assertEqual(self.browser.run("return document.querySelector(arguments[0]).dataset.notice", self.tile("front-door")), "open")
        self.sheet("front-door")
        self.await_text("#sheet .toggle-word", "Unlocked")
        self.browser.wait("return [...document.querySelectorAll('.history-value')].map((text) => text.textContent).join() === 'Unlocked,Locked'")
        self.browser.fold()
        # It locks without a question.
        self.browser.click(switch)
        wait_for(lambda: self.stage.told("front-door/lock")[told:] == ["UNLOCK", "LOCK"])
        self.assertFalse(self.browser.run("return document.querySelector('#ask').open"))
        self.stage.report("front-door/lock", "LOCKED")
        self.await_text(self.tile("front-door", ".tile-state"), "Locked")

    def test_what_the_gateway_says_of_a_class_counts(self):
        found = self.browser.run("""return import(new URL('house.js', document.querySelector('script[type=module]').src)).then((m) => import(new URL('values.js', document.querySelector('script[type=module]').src)).then((v) => [
            { class: 'window', value: true }, { class: 'window', value: false }, { class: 'lock', value: true }, { id: 'contact', reversed: true, value: true },
            { id: 'contact', class: 'door', reversed: false, value: true }, { id: 'x', value: true }, { class: 'lock', read_only: false, value: true },
            { id: 'battery', type: 'integer', unit: '%', value: 8 }, { id: 'moisture', class: 'moisture', value: true },
          ].map(({ value, id = 'a', ...facts }) => {
            const key = new m.Key({ key: `d/${id}`, type: 'boolean', read_only: true, ...facts }, {}, id);
            key.row({ target: null, actual: value }, 0);
            return [v.spoken(key, key.shown), key.notice];
          })))""")
        self.assertEqual(found, [["Open", "open"], ["Closed", None], ["Unlocked", "open"], ["Closed", None], ["Open", "open"], ["On", None],
                                 ["Locked", None], ["8 %", "low"], ["Wet", "alarm"]])

    # The house at a glance

    def sums(self, expected):
        self.browser.wait("return JSON.stringify([...document.querySelectorAll('#sums button')].map((chip) => chip.textContent)) === JSON.stringify(arguments[0])",
                          expected, what=f"the line says {expected}")

    def test_a_line_sums_up_the_house_and_each_part_filters(self):
        shown = "return [...document.querySelectorAll('.tile')].filter((tile) => tile.offsetParent).map((tile) => tile.dataset.device)"
        chip = "[...document.querySelectorAll('#sums button')].find((chip) => chip.textContent === arguments[0]).click()"
        self.sums(["Kitchen Window open", "6 lamps on", "20.8°", "Garden Shed battery 8 %"])
        self.browser.run(chip, "6 lamps on")
        lamps = ["floor-lamp", "shelf-strip", "kitchen-ceiling", "worktop", "bedside-left", "desk-lamp"]
        self.assertEqual(self.browser.run(shown), lamps)
        self.browser.run(chip, "6 lamps on")
        self.assertEqual(len(self.browser.run(shown)), 41)
        self.browser.run(chip, "Garden Shed battery 8 %")
        self.assertEqual(self.browser.run(shown), ["shed"])
        self.browser.run(chip, "Garden Shed battery 8 %")
        self.addCleanup(lambda: [self.stage.report(key, value) for key, value in states(HOUSE).items()])
        self.stage.report("kitchen-window/contact", "true")
        self.stage.report("shed/battery", "90")
        self.stage.report("bath-leak/water_leak", "true")
        self.stage.report("desk-lamp/power", "false")
        self.sums(["Leak at the washing machine: Wet", "All closed", "5 lamps on", "20.8°"])
        for device in ("kitchen-window", "balcony-door"):
            self.stage.report(f"{device}/contact", "false")
        self.stage.report("garage/position", "60")
        self.stage.report("front-door/lock", "UNLOCKED")
        # The gateway says which class the garage door has; without it, it is a blind.
        count = 4 if "class" in self.stage.get("v1/devices/garage") else 3
        self.sums(["Leak at the washing machine: Wet", f"{count} open", "5 lamps on", "20.8°"])

    def test_the_line_is_computed_only_when_what_it_depends_on_changed(self):
        self.addCleanup(lambda: [self.stage.report(key, value) for key, value in states(HOUSE).items()])
        self.sums(["Kitchen Window open", "6 lamps on", "20.8°", "Garden Shed battery 8 %"])
        self.browser.run("""
            globalThis.counted = { sums: 0, draws: 0, longest: 0 };
            const { bar } = settlePanel, { sum, update } = bar, later = setTimeout;
            bar.sum = function () { counted.sums += 1; sum.call(this); };
            bar.update = function (devices) {
              counted.draws += 1;
              globalThis.setTimeout = (call, delay) => { counted.longest = Math.max(counted.longest, delay); return later(call, delay); };
              try { update.call(this, devices); } finally { globalThis.setTimeout = later; }
            };""")

        def flood(key, value):
            """Values of one key, 100 a second for 2 s; returns how often the line was computed, and the page drawn."""
            self.browser.run("Object.assign(counted, { sums: 0, draws: 0, longest: 0 })")
            start = time.monotonic()
            for number in range(200):
                self.stage.report(key, value(number))
                time.sleep(max(0, start + number / 100 - time.monotonic()))
            self.stage.devices.flush()
            time.sleep(0.5)
            self.browser.wait("return settlePanel.bar.timer === null && !settlePanel.isPlanned", what="nothing is left to draw")
            return self.browser.run("return counted") | {"seconds": time.monotonic() - start}

        # The level of a lamp that is on does not count.
        dimmed = flood("worktop/brightness", lambda number: str(1 + number % 100))
        self.assertGreater(dimmed["draws"], 5)
        self.assertEqual(dimmed["sums"], 0)
        # A temperature does, at most four times a second, and none waits for longer.
        warmed = flood("shed/temperature", lambda number: f"{number / 10}")
        self.assertGreater(warmed["sums"], 1)
        self.assertLessEqual(warmed["sums"], warmed["seconds"] * 4 + 1)
        self.assertLessEqual(warmed["longest"], 250)
        self.stage.report("desk-lamp/power", "false")
        self.sums(["Kitchen Window open", "5 lamps on", "20.8°", "Garden Shed battery 8 %"])

    def test_what_has_left_can_be_taken_back(self):
        key = "worktop/brightness"
        self.addCleanup(self.stage.report, key, "49")
        told = len(self.stage.told(key))
        box = self.browser.box(self.tile("worktop", ".range"))
        y = box["y"] + box["height"] / 2
        self.browser.press_at(box["x"] + box["width"] * 0.3, y)
        for share in (0.3, 0.6, 0.8):
            self.browser.slide_to(box["x"] + box["width"] * share, y)
        self.browser.lift()
        self.browser.wait("return [...document.querySelectorAll('#pending button')].some((button) => button.offsetParent && button.textContent === 'Back to 49 %')")
        self.browser.run("[...document.querySelectorAll('#pending button')].find((button) => button.offsetParent).click()")
        self.browser.wait("const key = settlePanel.house.find('worktop/brightness'); return key.actual === 49 && key.phase === 'confirmed'")
        self.assertEqual(self.stage.told(key)[told + 1:], ["49"])

    def test_a_failure_says_what_can_be_done(self):
        self.sheet("pump")
        self.await_text(f"{row('pump/flow')} .trouble", "not confirmed within 300ms")
        self.await_text(f"{row('pump/flow')} .advice", "Look whether the device has power and is in reach")
        self.browser.fold()


class Silent(Case):
    settings = {"devices": """
lamp:
  name: Lamp
  properties:
    power: {type: boolean, command: {topic: cmd/lamp/power, payload: $value}, state: {topic: state/wrong/power}, confirm: {within: 300ms}}
    brightness: {type: integer, range: [0, 100], command: {topic: cmd/lamp/brightness, payload: $value}, state: {topic: state/wrong/brightness}}
""", "states": {}}

    def open(self, browser):
        browser.open(self.stage.url)
        browser.wait("return document.querySelectorAll('.tile').length === 1 && settlePanel.link.state === 'live'")

    def test_a_device_that_was_never_heard_says_so_and_on_which_topic(self):
        self.await_text("[data-device=lamp] .tile-state", "Nothing heard yet")
        self.browser.reveal(row("lamp/x"))
        self.await_text("#sheet-note", "Nothing was heard of it since the gateway started, on state/wrong/power, state/wrong/brightness")
        self.stage.send({"key": "lamp/power", "set": True})
        self.await_text(f"{row('lamp/power')} .advice", "Nothing has been heard on state/wrong/power")
        self.stage.devices.publish("state/wrong/power", "true", retain=True)
        self.await_text(f"{row('lamp/power')} .advice", "Look whether the device has power")
        self.assertNotIn("heard", self.browser.run("return document.querySelector('#sheet-note').textContent"))
        self.browser.fold()


if __name__ == "__main__":
    unittest.main()
