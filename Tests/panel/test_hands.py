# Settle
# SPDX-License-Identifier: Apache-2.0
"""What people meet in daily use: values that are not known, typed numbers, colors, drafts, a search, hidden tabs."""

import os
import signal
import time

from case import Browsers, Case, has_token, row
from stage import HOME, wait_for
from webdriver import KEYS

MORE = """
shed:
  name: Shed
  properties:
    power: {type: boolean, command: {topic: cmd/shed/power, payload: $value}, state: {topic: state/shed/power}}
    level: {type: integer, range: [0, 100], command: {topic: cmd/shed/level, payload: $value}, state: {topic: state/shed/level}}
"""


def setUpModule():
    Browsers.start()


class Hands(Case):
    """Values that are not known, typed numbers, colors and drafts."""

    settings = {"devices": HOME + MORE}

    def is_expected(self, complaint):
        return "net::ERR" in complaint or "Failed to load resource" in complaint

    def test_a_value_that_is_not_known_is_set_explicitly(self):
        self.browser.wait("return document.querySelector(arguments[0] + ' [role=switch]').hidden", row("shed/power"))
        self.browser.click(f"{row('shed/power')} [aria-label$=': On']")
        self.await_progress("shed/power", "confirmed")
        self.assertEqual(self.stage.told("shed/power"), ["true"])
        self.assertEqual(self.browser.run("return document.querySelector(arguments[0] + ' [role=switch]').ariaChecked", row("shed/power")), "true")
        # The focus is on the switch, which has replaced the two buttons.
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('role')"), "switch")
        self.assertEqual(self.browser.run("return document.querySelector(arguments[0] + ' .range').ariaValueText", row("shed/level")), "Unknown")
        self.browser.click(f"{row('shed/level')} [aria-label$=': more']")
        self.await_progress("shed/level", "confirmed")
        self.assertEqual(self.stage.told("shed/level"), ["50"])

    def test_a_german_browser_reads_and_shows_a_comma(self):
        german = Browsers.browser()
        self.addCleanup(german.close)
        german.devtools("Emulation.setLocaleOverride", locale="de-DE")
        agent = german.run("return navigator.userAgent")
        german.devtools("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="de-DE")
        self.open(german)
        key = "boiler/target_temperature"
        self.assertEqual(german.run("return document.documentElement.lang"), "de")
        self.await_text("#link-text", "Verbunden", german)
        for typed, shown, told in (("21,5", "21,5", "21.5"), ("23.5", "23,5", "23.5")):
            german.run(f"document.querySelector(\"{row(key)} .figure\").focus()")
            german.press(*typed, KEYS["enter"])
            self.await_figure(key, shown, german)
            wait_for(lambda: self.stage.told(key)[-1:] == [told], what=f"{told} is sent")
            self.await_progress(key, "confirmed", browser=german)
        self.assertEqual(german.run("return document.querySelector(arguments[0] + ' .figure').ariaValueNow", row(key)), "23.5")
        # 1.000 is a thousand for some and one for others: it is not sent.
        told = len(self.stage.told("sign/volume"))
        self.figure("sign/volume", german)
        german.run(f"document.querySelector(\"{row('sign/volume')} .figure\").focus()")
        german.press(*"1.000", KEYS["enter"])
        self.await_text(f"{row('sign/volume')} .trouble", "1000", german)
        self.assertEqual(len(self.stage.told("sign/volume")), told)
        german.press(*"1,25", KEYS["enter"])
        wait_for(lambda: self.stage.told("sign/volume")[-1:] == ["1.25"], what="1,25 is sent")
        self.await_progress("sign/volume", "confirmed", browser=german)
        self.assertEqual(german.complaints(), [])

    def test_forced_colors_show_what_is_on_and_how_much(self):
        self.browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
        self.addCleanup(self.browser.media, "light")
        self.stage.report("desk-lamp/power", "true")
        self.browser.wait("return document.querySelector(arguments[0]).ariaChecked === 'true'", f"{row('desk-lamp/power')} [role=switch]")
        looks = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
        track = f"{row('desk-lamp/power')} .switch-track"
        time.sleep(0.4)
        on = self.browser.run(looks, track)
        self.stage.report("desk-lamp/power", "false")
        self.browser.wait("return document.querySelector(arguments[0]).ariaChecked === 'false'", f"{row('desk-lamp/power')} [role=switch]")
        time.sleep(0.4)
        self.assertNotEqual(self.browser.run(looks, track), on)
        for key in ("desk-lamp/brightness", "strip/color"):
            self.assertEqual(self.browser.run("return getComputedStyle(document.querySelector(arguments[0] + ' :is(.thick, .slider)')).forcedColorAdjust", row(key)), "none")

    def test_a_hex_color_keeps_its_hue_and_its_brightness(self):
        key = "strip/color"
        self.stage.report(key, "#800000")
        self.browser.wait("return document.querySelector(arguments[0] + ' .swatch').value === '#800000'", row(key))
        strips = f"{row(key)} .strips .range"
        move = """
            const range = document.querySelectorAll(arguments[0])[arguments[1]];
            range.valueAsNumber = arguments[2]; range.dispatchEvent(new Event("input"));"""
        self.browser.run(move, strips, 0, 240)
        wait_for(lambda: self.stage.told(key)[-1:] == ["#000080"], what="the hue moves, the brightness stays")
        self.await_progress(key, "confirmed")
        self.browser.run(move, strips, 1, 0)
        wait_for(lambda: self.stage.told(key)[-1:] == ["#808080"], what="gray")
        self.await_progress(key, "confirmed")
        self.assertEqual(self.browser.run("return document.querySelector(arguments[0]).valueAsNumber", strips), 240)
        self.browser.run(move, strips, 1, 100)
        wait_for(lambda: self.stage.told(key)[-1:] == ["#000080"], what="the hue is back")
        self.await_progress(key, "confirmed")

    def test_an_abandoned_draft_gives_way_to_a_newer_value(self):
        key = "sign/message"
        field = f"{row(key)} .field"
        self.browser.type(field, "half a sen")
        self.browser.run("document.activeElement.blur()")
        self.stage.report(key, "Gone fishing")
        self.browser.wait("return document.querySelector(arguments[0]).value === 'Gone fishing'", field)
        # A draft under the hands stays.
        self.browser.run("document.querySelector(arguments[0]).select()", field)
        self.browser.type(field, "mine")
        draft = self.browser.run("return document.activeElement.value")
        self.stage.report(key, "theirs")
        wait_for(lambda: self.stage.get(f"v1/devices/{key}")["actual"] == "theirs")
        time.sleep(0.2)
        self.assertEqual(self.browser.run("return document.activeElement.value"), draft)
        self.browser.press(KEYS["escape"])

    def test_a_refused_value_is_marked_as_invalid(self):
        key = "desk-lamp/brightness"
        self.browser.run(f"document.querySelector(\"{row(key)} .figure\").focus()")
        self.browser.press("9", "9", "9", KEYS["enter"])
        self.browser.wait("return document.querySelector(arguments[0]).ariaInvalid === 'true'", f"{row(key)} .figure")
        self.browser.press("4", "0", KEYS["enter"])
        self.browser.wait("return document.querySelector(arguments[0]).ariaInvalid !== 'true'", f"{row(key)} .figure")
        self.await_progress(key, "confirmed")

    def test_a_settling_value_is_sent_or_cancelled_in_its_row(self):
        key = "boiler/target_temperature"
        before = self.figure(key)
        self.browser.run(f"settlePanel.house.find('{key}').delay = 5000")
        self.browser.click(f"{row(key)} [aria-label$=': more']")
        self.browser.click(f"{row(key)} [aria-label$=': Cancel']")
        self.await_progress(key, "cancelled", "idle")
        self.await_figure(key, before)
        told = len(self.stage.told(key))
        self.browser.click(f"{row(key)} [aria-label$=': more']")
        self.browser.click(f"{row(key)} [aria-label$=': Send now']")
        self.await_progress(key, "confirmed")
        self.assertEqual(len(self.stage.told(key)), told + 1)

    def test_the_focus_stays_at_the_control_after_send_now_and_retry(self):
        key = "boiler/target_temperature"
        focused = "return document.activeElement.closest('[data-key]')?.dataset.key ?? null"
        self.browser.run(f"settlePanel.house.find('{key}').delay = 5000")
        for button in (f"{row(key)} [aria-label$=': Send now']", ".log-part .primary"):
            self.browser.click(f"{row(key)} [aria-label$=': more']")
            self.browser.find(button)
            self.browser.run("document.querySelector(arguments[0]).focus(); document.activeElement.click()", button)
            self.await_progress(key, "confirmed")
            self.assertEqual(self.browser.run(focused), key)
        # From the page, to the tile.
        self.browser.fold()
        self.browser.run("document.querySelector(\"[data-device='boiler'] [aria-label$=': more']\").click()")
        # The bar may still offer to take back the change before.
        self.browser.wait("return document.querySelector('#pending .primary').offsetParent")
        self.browser.run("document.querySelector('#pending .primary').focus(); document.activeElement.click()")
        self.browser.wait("return document.querySelector('#pending').hidden")
        self.assertEqual(self.browser.run("return document.activeElement.closest('[data-device]')?.dataset.device ?? null"), "boiler")
        # Retry, in the open device and in the tile.
        key = "garden-pump/flow"
        for at, retry in ((row(key), f"{row(key)} .retry"), ("[data-device='garden-pump']", "[data-device='garden-pump'] .tile-retry")):
            self.browser.click(f"{row(key)} [aria-label$=': more']")
            self.await_progress(key, "failed")
            if "tile" in retry:
                self.browser.fold()
            self.browser.run("document.querySelector(arguments[0]).focus(); document.activeElement.click()", retry)
            self.browser.wait("return settlePanel.house.find(arguments[0]).progress(performance.now()).name !== 'failed'", key)
            time.sleep(0.1)
            self.assertTrue(self.browser.run("return document.activeElement.closest(arguments[0]) !== null", at), retry)

    def test_a_value_that_is_held_for_its_device_can_be_cancelled_and_not_sent_now(self):
        key = "attic-fan/speed"
        self.stage.away("attic-fan")
        self.addCleanup(self.stage.away, "attic-fan", False)
        self.browser.wait("return document.querySelector(\"[data-device='attic-fan']\").hasAttribute('data-offline')")
        self.browser.click(f"{row(key)} [aria-label$=': more']")
        self.await_progress(key, "waiting")
        offered = "return [...document.querySelectorAll(arguments[0])].filter((node) => node.offsetParent && !node.disabled).length"
        self.browser.click(f"{row(key)} .label")
        for place in (f"{row(key)} [aria-label$=': Send now']", ".log-part .primary"):
            self.assertEqual(self.browser.run(offered, place), 0, place)
        self.assertEqual(self.browser.run(offered, ".log-part .button:not(.primary)"), 1)
        self.browser.fold()
        self.browser.wait("return !document.querySelector('#pending').hidden")
        self.assertEqual(self.browser.run(offered, "#pending .primary"), 0)
        self.assertEqual(self.browser.run(offered, "#pending .button"), 1)
        self.browser.click("#pending .button")
        self.browser.wait("return settlePanel.house.find(arguments[0]).phase === 'cancelled'", key)

    def test_a_result_fades(self):
        key = "desk-lamp/brightness"
        self.drag(key, [0.2, 0.3, 0.4, 0.5])
        self.browser.lift()
        self.await_progress(key, "confirmed")
        self.assertRegex(self.status(key), "→")
        self.browser.wait("return document.querySelector(arguments[0] + ' .status').textContent === ''", row(key), seconds=30)
        self.assertTrue(self.browser.run("return document.querySelector(arguments[0] + ' .mark').hasAttribute('data-old')", row(key)))

    def test_a_frozen_gateway_is_not_called_a_failure(self):
        key = "desk-lamp/brightness"
        self.browser.run("""
            globalThis.failed = 0;
            new MutationObserver(() => { failed += Boolean(document.querySelector("[data-key='desk-lamp/brightness'][data-progress=failed]")); })
              .observe(document.body, { subtree: true, attributes: true, attributeFilter: ["data-progress"] });""")
        presses = len(self.stage.told("hall-blind/command"))
        self.stage.gateway.send_signal(signal.SIGSTOP)
        try:
            self.browser.click(f"{row(key)} [aria-label$=': more']")
            shown = self.figure(key)
            self.browser.click(f"{row('hall-blind/command')} .button")
            self.await_progress(key, "unsent", seconds=30)
            time.sleep(12)
        finally:
            self.stage.gateway.send_signal(signal.SIGCONT)
        self.await_progress(key, "confirmed")
        self.assertEqual(self.stage.told(key)[-1], shown)
        # The press belonged to its moment: it is dropped, and the page says so.
        self.await_text(f"{row('hall-blind/command')} .trouble", "not sent")
        self.browser.wait("return document.getElementById('link').dataset.state === 'live'")
        time.sleep(1)
        self.assertEqual(len(self.stage.told("hall-blind/command")), presses)
        self.assertEqual(self.browser.run("return failed"), 0)


class Page(Case):
    """The search, tabs, reloads, the keyboard."""

    def is_expected(self, complaint):
        return "net::ERR" in complaint

    def test_a_search_matches_words_of_device_and_property(self):
        shown = "return [...document.querySelectorAll('.tile')].filter((p) => p.offsetParent).map((p) => p.dataset.device)"
        self.browser.type("#filter", "lamp bright")
        self.assertEqual(self.browser.run(shown), ["desk-lamp"])
        self.browser.run("const f = document.querySelector('#filter'); f.value = 'light effect'; f.dispatchEvent(new Event('input'))")
        self.assertEqual(self.browser.run(shown), ["strip"])

    def test_a_reload_keeps_cards_and_focus(self):
        self.browser.run("""
            globalThis.card = document.querySelector("[data-device='boiler']");
            document.querySelector("[data-key='boiler/target_temperature'] .figure").focus();""")
        path = os.path.join(self.stage.folder, "devices", "more.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("attic: {name: Attic, properties: {level: {type: integer, range: [0, 9], command: {topic: cmd/attic/level, payload: $value}}}}\n")
        self.addCleanup(lambda: os.path.exists(path) and os.remove(path))
        self.stage.gateway.send_signal(signal.SIGHUP)
        self.browser.wait("return document.querySelector(\"[data-device='attic']\")")
        self.assertTrue(self.browser.run("return card.isConnected && card === document.querySelector(\"[data-device='boiler']\")"))
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('aria-label')"), "Boiler, Target temperature, type a value")
        os.remove(path)
        self.stage.gateway.send_signal(signal.SIGHUP)
        self.browser.wait("return !document.querySelector(\"[data-device='attic']\")")

    def test_the_skip_link_leads_past_the_bar_and_focus_is_never_below_it(self):
        self.browser.resize(800, 500)
        self.addCleanup(self.browser.resize, 1280, 900)
        self.browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
        self.browser.press(KEYS["tab"])
        self.assertEqual(self.browser.run("return document.activeElement.className"), "skip")
        self.browser.press(KEYS["enter"])
        self.assertEqual(self.browser.run("return document.activeElement.id"), "main")
        # Backwards from the end, each focus scrolls up to its control.
        self.browser.run("window.scrollTo(0, 1e6); [...document.querySelectorAll('main button, main input')].filter((n) => n.offsetParent).at(-1).focus()")
        for _ in range(25):
            self.browser.run("""
                const all = [...document.querySelectorAll("main button, main input, main select")].filter((n) => n.offsetParent && n.tabIndex >= 0);
                const before = all[all.indexOf(document.activeElement) - 1]; before?.focus();""")
            top, bar = self.browser.run("return [document.activeElement.getBoundingClientRect().top, document.querySelector('#bar').getBoundingClientRect().bottom]")
            self.assertGreaterEqual(top, bar - 1)

    def test_hidden_tabs_leave_their_connections_to_others(self):
        browser = Browsers.browser()
        self.addCleanup(browser.close)
        self.open(browser)
        first = browser.call("GET", "/window")
        handles = [first]
        for _ in range(6):
            handle = browser.call("POST", "/window/new", {"type": "tab"})["handle"]
            handles.append(handle)
            browser.call("POST", "/window", {"handle": handle})
            self.open(browser)
        key = "desk-lamp/brightness"
        self.stage.report(key, "77")
        self.await_figure(key, "77", browser)
        browser.call("POST", "/window", {"handle": first})
        browser.enter()
        self.await_figure(key, "77", browser)
        browser.wait("return document.getElementById('link').dataset.state === 'live'")


@has_token
class Locked(Case):
    """The token page."""

    settings = {"token": "correct-horse-battery"}

    def is_expected(self, complaint):
        return "401" in complaint

    def open(self, browser):
        browser.open(self.stage.url)
        browser.wait("return document.querySelector('#login').matches(':modal')")

    def test_escape_does_not_leave_a_blank_page(self):
        for _ in range(4):
            self.browser.press(KEYS["escape"])
        self.browser.wait("return document.querySelector('#login').matches(':modal')")

    def test_the_token_of_an_address_is_used_and_removed(self):
        self.browser.open("about:blank")
        self.browser.open(self.stage.url + "#token=correct-horse-battery")
        self.browser.wait("return document.querySelectorAll('.tile').length >= 8")
        self.assertEqual(self.browser.run("return location.hash"), "")
        self.browser.run("sessionStorage.clear()")
