# Settle
# SPDX-License-Identifier: Apache-2.0
"""Accessibility: sizes, themes, names, the timeline, the search."""

import os
import unittest

from case import HERE, Browsers, Case, row
from stage import IN_FRAME
from webdriver import KEYS

# Sizes from a small phone to a wall display.
WIDTHS = (360, 768, 1440, 2560, 3840)


def setUpModule():
    Browsers.start()


class Looks(Case):
    """Accessibility, in every size and theme."""

    def settle_down(self):
        self.stage.away("attic-fan")
        self.drag("garden-pump/flow", [0.4, 0.7])
        self.browser.lift()
        self.await_progress("garden-pump/flow", "failed")
        self.browser.wait("return document.querySelector(\"[data-device='attic-fan']\").hasAttribute('data-offline')")
        self.browser.click(f"{row('boiler/target_temperature')} [aria-label$=': more']")
        self.browser.fold()

    def tearDown(self):
        self.stage.away("attic-fan", False)
        self.browser.resize(1280, 900)
        self.browser.media("light")
        super().tearDown()

    def test_names_contrast_targets_landmarks_and_width(self):
        with open(os.path.join(HERE, "checks.js"), encoding="utf-8") as file:
            checks = file.read()
        self.settle_down()
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                with self.subTest(width=width, scheme=scheme):
                    self.browser.resize(width, 900)
                    # Without motion no color is in transition when it is measured.
                    self.browser.media(scheme, "reduce")
                    self.browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                    found = self.browser.run(checks)
                    self.assertEqual(found["problems"], [])
                    self.assertGreater(found["texts"], 25)
                    self.assertGreater(found["controls"], 20)
        self.browser.resize(360, 780)
        for device in ("boiler", "desk-lamp", "strip", "hall-blind", "sign", "attic-fan"):
            for scheme in ("light", "dark"):
                with self.subTest(device=device, scheme=scheme):
                    self.browser.media(scheme, "reduce")
                    self.browser.run("return document.querySelector(arguments[0])", f"[data-key='{device}/x']")
                    self.browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
                    self.assertEqual(self.browser.run(checks)["problems"], [])

    @unittest.skipIf(IN_FRAME, "the browser's tree is that of the outer page")
    def test_announcements_to_assistive_technology(self):
        self.browser.devtools("Accessibility.enable")
        page = {node.get("role", {}).get("value") for node in self.browser.devtools("Accessibility.getFullAXTree")["nodes"] if not node.get("ignored")}
        for role in ("main", "banner", "search", "switch", "status", "heading", "region"):
            self.assertIn(role, page)
        self.browser.run("return document.querySelector(\"[data-key='boiler/mode']\")")
        nodes = self.browser.devtools("Accessibility.getFullAXTree")["nodes"]
        tree = [(node.get("role", {}).get("value"), node.get("name", {}).get("value"), node) for node in nodes if not node.get("ignored")]
        slider = next(node for role, name, node in tree if role == "slider" and name == "Boiler, Target temperature")
        spin = next(node for role, name, node in tree if role == "spinbutton" and name.startswith("Boiler, Target temperature"))
        known = {entry["name"]: entry["value"].get("value") for entry in slider["properties"]}
        self.assertEqual((known["valuemin"], known["valuemax"]), (5, 30))
        self.assertRegex(self.browser.run("return document.querySelector(\"[data-key='boiler/target_temperature'] .range\").ariaValueText"),
                         r"^\d+\.\d °C$")
        self.assertEqual(str(float(slider["value"]["value"])), self.figure("boiler/target_temperature"))
        self.assertEqual(float(self.browser.run("return document.querySelector(\"[data-key='boiler/target_temperature'] .figure\").ariaValueNow")),
                         float(slider["value"]["value"]))
        self.assertTrue(spin)
        roles = {role for role, _, _ in tree}
        for role in ("dialog", "radiogroup", "radio", "heading"):
            self.assertIn(role, roles)

    def test_without_motion_nothing_moves_by_itself(self):
        self.browser.media("light", "reduce")
        self.browser.run("""
            globalThis.moved = 0;
            const ring = document.querySelector("[data-key='boiler/target_temperature'] .mark-ring");
            new MutationObserver((all) => { moved += all.length; }).observe(ring, { attributes: true });""")
        self.browser.click(f"{row('boiler/target_temperature')} [aria-label$=': more']")
        self.assertEqual(self.browser.run("return document.getAnimations().length"), 0)
        self.await_progress("boiler/target_temperature", "confirmed")
        self.assertEqual(self.browser.run("return document.getAnimations().length"), 0)
        # At most four steps a second, where a moving ring has sixty.
        self.assertLess(self.browser.run("return moved"), 12)

    def test_the_timeline_draws_changes_against_commands(self):
        key = "desk-lamp/brightness"
        self.drag(key, [0.2 + 0.6 * i / 20 for i in range(21)])
        self.browser.lift()
        self.await_progress(key, "confirmed")
        self.browser.click(f"{row(key)} .label")
        self.await_text(".log-title", "Desk lamp, Brightness")
        self.await_text("#sheet .log li", "Confirmed")
        self.assertRegex(self.browser.run("return document.querySelector('#sheet .log-tally').textContent"), r"^\d+ changes? → 1 command$")
        self.assertRegex(self.browser.run("return document.querySelector(\"[data-key='desk-lamp/brightness'] canvas\").ariaLabel"), r"\d+ changes became \d commands?$")
        painted = self.browser.run("""
            const canvas = document.querySelector("[data-key='desk-lamp/brightness'] canvas");
            const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            let count = 0;
            for (let at = 3; at < data.length; at += 4) count += data[at] > 0;
            return count / (data.length / 4);""")
        self.assertGreater(painted, 0.005)
        self.browser.press(KEYS["escape"])
        self.browser.wait("return !document.querySelector('#sheet').open && location.hash === ''")

    def test_a_settling_value_can_be_sent_now_or_cancelled_from_the_timeline(self):
        key = "boiler/target_temperature"
        before = self.figure(key)
        told = len(self.stage.told(key))
        self.browser.click(f"{row(key)} .label")
        for name in ("Send now", "Cancel"):
            self.assertTrue(self.browser.run("return [...document.querySelectorAll('#sheet .log-part button')].find((b) => b.textContent === arguments[0]).disabled", name))
        self.stage.send({"key": key, "set": 9})
        self.browser.wait("return !document.querySelector('#sheet .primary').disabled")
        self.browser.run("[...document.querySelectorAll('#sheet .log-part button')].find((b) => b.textContent === 'Cancel').click()")
        self.await_progress(key, "cancelled")
        self.assertEqual(self.figure(key), before)
        self.stage.send({"key": key, "set": 9})
        self.browser.wait("return !document.querySelector('#sheet .primary').disabled")
        self.browser.run("document.querySelector('#sheet .primary').click()")
        self.await_progress(key, "confirmed")
        self.assertEqual(self.stage.told(key)[told:], ["9"])

    def test_a_search_shows_its_results(self):
        shown = "return [...document.querySelectorAll('.tile')].filter((c) => c.offsetParent).map((c) => c.dataset.device)"
        self.browser.type("#filter", "bright")
        self.assertEqual(sorted(self.browser.run(shown)), ["desk-lamp", "porch-light"])
        # A tile that was found by the name of a property opens at it.
        self.browser.click("[data-device='desk-lamp'] .tile-name")
        self.browser.wait("return document.querySelector('#sheet .label[aria-pressed=true]')?.ariaLabel === 'Desk lamp, Brightness: timeline'")
        self.browser.fold()
        self.browser.type("#filter", "xyz")
        self.await_text("#empty", "Nothing is called “brightxyz”")
        self.browser.run("const f = document.querySelector('#filter'); f.value = 'hall'; f.dispatchEvent(new Event('input'))")
        self.assertEqual(self.browser.run(shown), ["hall-blind"])

    def test_the_totals_filter_by_what_they_count(self):
        self.settle_down()
        self.await_text("[data-only=failed]", "1 failed")
        self.browser.click("[data-only=failed]")
        shown = "return [...document.querySelectorAll('.tile')].filter((c) => c.offsetParent).map((c) => c.dataset.device)"
        self.assertEqual(self.browser.run(shown), ["garden-pump"])
        self.browser.click("[data-only=failed]")
        self.assertEqual(len(self.browser.run(shown)), 8)
