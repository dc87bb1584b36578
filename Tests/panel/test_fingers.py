# Settle
# SPDX-License-Identifier: Apache-2.0
"""Every kind of control, by pointer, by touch and by keyboard."""

import re
import time

from case import Browsers, Case, row
from stage import wait_for
from webdriver import KEYS


def setUpModule():
    Browsers.start()


class Fingers(Case):
    """Every kind of control, by pointer and by keyboard."""

    def test_a_drag_moves_the_number_at_once_and_sends_only_the_last_value(self):
        key = "desk-lamp/brightness"
        before = len(self.stage.told(key))
        # The number is read in the same turn as the input, before the network can answer.
        self.browser.run(f"""
            const slider = document.querySelector("{row(key)} .range"), figure = document.querySelector("{row(key)} .figure");
            globalThis.seen = [];
            slider.addEventListener("input", () => seen.push([slider.valueAsNumber, Number(figure.value)]));""")
        self.drag(key, [0.5 + 0.4 * i / 40 for i in range(41)])
        self.assertEqual(self.progress(key), "settling")
        self.assertRegex(self.status(key), r"^Settling · \d+ changes$")
        ring = "return parseFloat(document.querySelector(arguments[0] + ' .mark-ring').style.strokeDashoffset)"
        self.assertLess(self.browser.run(ring, row(key)), 100)
        self.browser.lift()
        shown = self.figure(key)
        self.await_progress(key, "confirmed")
        self.assertEqual(self.figure(key), shown)
        seen = self.browser.run("return seen")
        self.assertGreater(len(seen), 10)
        self.assertTrue(all(slider == figure for slider, figure in seen), seen)
        self.assertEqual(self.stage.told(key)[before:], [shown])
        changes = int(re.match(r"(\d+) changes → 1 command", self.status(key)).group(1))
        self.assertGreater(changes, 5)

    def test_the_ring_empties_while_the_key_settles(self):
        key = "boiler/target_temperature"
        self.browser.run(f"""
            globalThis.left = [];
            const ring = document.querySelector("{row(key)} .mark-ring"), node = document.querySelector("{row(key)}");
            const look = () => {{
              const isSettling = node.dataset.progress === "settling";
              if (isSettling) left.push([performance.now(), parseFloat(ring.style.strokeDashoffset)]);
              if (isSettling || left.length === 0) requestAnimationFrame(look);
            }};
            look();""")
        self.browser.click(f"{row(key)} [aria-label$=': more']")
        self.await_progress(key, "confirmed")
        left = self.browser.run("return left")
        gone = [offset for _, offset in left]
        self.assertLess(gone[0], 20)
        self.assertGreater(gone[-1], 85)
        # The ring may go back a little once, when the gateway reports the time of the change.
        self.assertLessEqual(sum(later < earlier for earlier, later in zip(gone, gone[1:])), 1, gone)
        # As fast as the gateway's delay of 800 ms asks, however seldom the page draws.
        end = next((number for number, offset in enumerate(gone) if offset > 95), len(gone) - 1)
        speed = (gone[end] - gone[0]) / (left[end][0] - left[0][0])
        self.assertAlmostEqual(800 * speed, 100, delta=30)

    def test_echoes_of_own_changes_do_not_move_the_slider_while_the_finger_is_down(self):
        key = "porch-light/brightness"  # A live policy: a device report arrives every 200 ms.
        self.browser.run(f"""
            const slider = document.querySelector("{row(key)} .range");
            globalThis.jumps = []; let last = slider.valueAsNumber;
            const look = () => {{
              if (slider.valueAsNumber < last) jumps.push([last, slider.valueAsNumber]);
              last = slider.valueAsNumber; requestAnimationFrame(look);
            }};
            slider.addEventListener("input", () => {{ last = slider.valueAsNumber; look(); }}, {{ once: true }});""")
        before = len(self.stage.told(key))
        self.drag(key, [0.1 + 0.8 * i / 50 for i in range(51)])
        time.sleep(0.4)
        self.browser.lift()
        self.await_progress(key, "confirmed")
        self.assertEqual(self.browser.run("return jumps"), [])
        told = [int(value) for value in self.stage.told(key)[before:]]
        self.assertGreater(len(told), 3)
        self.assertEqual(str(told[-1]), self.figure(key))

    def test_a_resting_finger_keeps_its_value_when_others_change_the_key(self):
        key = "desk-lamp/brightness"
        self.take(key, 0.25)
        shown = self.figure(key)
        self.await_progress(key, "confirmed", "unchanged")
        self.stage.send({"key": key, "set": 200, "now": True})
        wait_for(lambda: self.stage.get(f"v1/devices/{key}")["actual"] == 200)
        time.sleep(0.1)
        self.assertEqual(self.figure(key), shown)
        self.browser.lift()
        self.await_figure(key, "200")

    def test_steps_add_up_and_are_sent_as_one_command(self):
        key = "boiler/target_temperature"
        self.await_progress(key, "idle", "confirmed", "unchanged", "done")
        start = float(self.figure(key))
        before = len(self.stage.told(key))
        for count in range(1, 4):
            self.browser.click(f"{row(key)} [aria-label$=': less']")
            self.assertEqual(float(self.figure(key)), start - 0.5 * count)
        self.await_progress(key, "confirmed")
        self.assertEqual([float(value) for value in self.stage.told(key)[before:]], [start - 1.5])
        # A slow machine may have put two of them into one frame.
        self.assertRegex(self.status(key), r"^([23] changes → 1 command)?$")

    def test_a_held_step_button_repeats(self):
        key = "desk-lamp/color_temp"
        start = int(self.figure(key))
        box = self.browser.box(f"{row(key)} [aria-label$=': more']")
        self.browser.press_at(box["x"] + 20, box["y"] + 20)
        self.browser.wait("return Number(document.querySelector(arguments[0] + ' .figure').value) > arguments[1]",
                          row(key), start + 3, what="the number goes on")
        self.browser.lift()
        self.await_progress(key, "confirmed")

    def test_a_thumb_on_a_phone_drags_a_slider_and_scrolls_the_page(self):
        key = "boiler/target_temperature"
        self.browser.resize(360, 740, 2, touch=True)
        self.addCleanup(self.browser.resize, 1280, 900)
        self.await_progress(key, "idle", "confirmed", "unchanged")
        start = self.figure(key)
        self.browser.fold()
        self.browser.resize(360, 480, 2, touch=True)
        box = self.browser.box("[data-device='desk-lamp'] .range")
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        before = self.browser.run("return settlePanel.house.find('desk-lamp/brightness').shown")
        self.browser.touch("touchStart", (x, y))
        for step in range(1, 13):
            self.browser.touch("touchMove", (x, y - 12 * step))
        self.browser.touch("touchEnd")
        self.browser.wait("return scrollY > 60", what="the page has scrolled")
        self.assertEqual(self.browser.run("return settlePanel.house.find('desk-lamp/brightness').shown"), before)
        x, y = self.place(key, (float(start) - 5) / 25)
        self.browser.touch("touchStart", (x, y))
        for step in range(1, 13):
            self.browser.touch("touchMove", (x - 6 * step, y))
        self.assertLess(float(self.figure(key)), float(start))
        self.assertEqual(self.progress(key), "settling")
        self.browser.touch("touchEnd")
        self.await_progress(key, "confirmed")
        # This is a tap.
        self.browser.touch("touchStart", self.place(key, 0.8))
        self.assertEqual(self.progress(key), "confirmed")
        self.browser.touch("touchEnd")
        self.await_figure(key, "25.0")
        self.await_progress(key, "confirmed")

    def test_a_switch_a_choice_and_a_long_choice(self):
        self.browser.click(f"{row('desk-lamp/power')} [role=switch]")
        self.assertEqual(self.browser.run("return document.querySelector(\"[data-key='desk-lamp/power'] [role=switch]\").ariaChecked"), "false")
        self.await_progress("desk-lamp/power", "confirmed")
        self.assertEqual(self.stage.told("desk-lamp/power")[-1], "false")
        self.browser.click(f"{row('boiler/mode')} input[value=auto]")
        self.await_progress("boiler/mode", "confirmed")
        self.assertEqual(self.stage.told("boiler/mode")[-1], "auto")
        self.browser.run("""const select = document.querySelector("[data-key='strip/effect'] select");
            select.value = "Waves"; select.dispatchEvent(new Event("change"));""")
        self.await_progress("strip/effect", "confirmed")
        self.assertEqual(self.stage.told("strip/effect")[-1], "Waves")

    def test_a_color_by_hue_and_by_picker(self):
        key = "strip/color"
        self.drag(key, [0.6, 0.5, 1 / 3])
        self.browser.lift()
        self.await_progress(key, "confirmed")
        red, green, blue = (int(self.stage.told(key)[-1][at:at + 2], 16) for at in (1, 3, 5))
        self.assertEqual(green, 255)
        self.assertTrue(red < 150 and blue < 150)
        self.browser.run(f"""const swatch = document.querySelector("{row(key)} .swatch");
            swatch.value = "#ff8800"; swatch.dispatchEvent(new Event("input"));""")
        wait_for(lambda: self.stage.told(key)[-1] == "#ff8800")
        self.await_progress(key, "confirmed")

    def test_stop_is_sent_at_once_and_ends_the_movement(self):
        key = "hall-blind/position"
        self.browser.click(f"{row(key)} [aria-label$=': more']")
        self.assertEqual(self.progress(key), "settling")
        before = len(self.stage.told(key))
        self.browser.click(f"{row('hall-blind/command')} [aria-label$=': Stop']")
        wait_for(lambda: self.stage.told("hall-blind/command")[-1:] == ["STOP"])
        self.await_progress(key, "cancelled")
        self.assertEqual(self.stage.told(key)[before:], [])
        self.assertEqual(self.figure(key), "35")

    def test_a_text_is_sent_with_enter(self):
        self.browser.run("document.querySelector(\"[data-key='sign/message'] .field\").select()")
        self.browser.type(f"{row('sign/message')} .field", "Back at five" + KEYS["enter"])
        self.await_progress("sign/message", "confirmed")
        self.assertEqual(self.stage.told("sign/message")[-1], "Back at five")

    def test_the_keyboard_alone_is_enough(self):
        key = "desk-lamp/brightness"
        self.browser.run(f"document.querySelector(\"{row(key)} .range\").focus()")
        start = int(self.figure(key))
        self.browser.press(KEYS["right"], KEYS["right"], KEYS["right"], KEYS["left"])
        self.assertEqual(int(self.figure(key)), start + 2)
        self.await_progress(key, "confirmed")
        self.browser.run(f"document.querySelector(\"{row(key)} .figure\").focus()")
        self.browser.press("4", "2", KEYS["enter"])
        self.await_figure(key, "42")
        self.await_progress(key, "confirmed")
        self.assertEqual(self.stage.told(key)[-1], "42")
        self.browser.press(KEYS["up"])
        self.await_figure(key, "43")
        self.browser.run("document.querySelector(\"[data-key='desk-lamp/power'] [role=switch]\").focus()")
        was = self.browser.run("return document.activeElement.ariaChecked")
        self.browser.press(KEYS["space"])
        self.assertNotEqual(self.browser.run("return document.activeElement.ariaChecked"), was)
        self.browser.run("document.querySelector(\"[data-key='boiler/mode'] input:checked\").focus()")
        self.browser.press(KEYS["left"])
        wait_for(lambda: self.stage.told("boiler/mode")[-1:] != [])
        self.browser.fold()
        self.browser.press("/")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "filter")

    def test_every_control_is_reached_by_tab_and_shows_its_focus(self):
        reached = self.walk()
        for wanted in ("Desk lamp, Brightness", "Desk lamp, Power", "Hall blind, Movement: Stop", "Desk lamp", "Boiler, Target temperature: more"):
            self.assertIn(wanted, reached)
        for key, wanted in (("desk-lamp/brightness", "Desk lamp, Brightness"), ("boiler/mode", "Boiler, Target temperature, type a value"),
                            ("strip/color", "Shelf light, Color: hue"), ("sign/message", "Door sign, Message"), ("sign/volume", "Door sign, Volume: more")):
            self.browser.run("return document.querySelector(arguments[0]) !== null", row(key))
            self.assertIn(wanted, self.walk())

    def walk(self):
        """Goes through the page, or through the open sheet, with Tab. Returns the names of what has had the focus."""
        self.browser.run("(document.querySelector('dialog:modal .round') ?? document.querySelector('#filter')).focus()")
        reached, unseen = set(), []
        for _ in range(90):
            name, outline = self.browser.run("""
                const node = document.activeElement;
                const shown = node.type === "radio" ? node.nextElementSibling : node;
                const outlined = [getComputedStyle(shown), getComputedStyle(shown, "::after")];
                return [node === document.body ? null : node.getAttribute("aria-label") ?? (node.value || node.textContent || node.id),
                        outlined.some((style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2)];""")
            if name is None or name in reached:
                break
            reached.add(name)
            if not outline and len(reached) > 1:
                unseen.append(name)
            self.browser.press(KEYS["tab"])
        self.assertEqual(unseen, [])
        return reached
