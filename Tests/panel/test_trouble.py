# Settle
# SPDX-License-Identifier: Apache-2.0
"""Faults, their messages, and two users at once."""

import os
import signal
import time

from case import Browsers, Case, row
from stage import wait_for
from webdriver import KEYS


def setUpModule():
    Browsers.start()


class Trouble(Case):
    """Faults and their messages."""

    def is_expected(self, complaint):
        # Some of these tests stop the gateway.
        return "net::ERR" in complaint or "Failed to load resource" in complaint

    def test_a_failure_shows_its_reason_restores_the_value_and_can_be_retried(self):
        key = "garden-pump/flow"
        before = self.figure(key)
        self.drag(key, [0.4, 0.6, 0.75])
        self.browser.lift()
        asked = self.figure(key)
        self.assertNotEqual(asked, before)
        self.await_progress(key, "failed")
        self.assertEqual(self.figure(key), before)
        self.await_text(f"{row(key)} .trouble", "not confirmed within 300ms")
        self.await_text("#alerts", "Garden pump, Flow: Failed: not confirmed within 300ms")
        # A later client sees it too, and can retry too.
        self.open(self.browser)
        self.await_text(f"{row(key)} .trouble", "not confirmed within 300ms")
        self.assertEqual(self.browser.run("return document.querySelector('#alerts').textContent"), "")
        self.stage.deaf.clear()
        try:
            self.browser.click(f"{row(key)} .retry")
            self.await_progress(key, "confirmed")
        finally:
            self.stage.deaf.add("garden-pump")
        self.assertEqual(self.figure(key), asked)
        self.assertEqual(self.browser.run(f"return document.querySelector(\"{row(key)} .trouble\")"), None)
        self.stage.report(key, before)
        self.await_figure(key, before)

    def test_a_refused_value_is_explained_and_restored(self):
        key = "desk-lamp/brightness"
        before = self.figure(key)
        for typed, reason in (("300", "0 to 254"), ("12,5", "12.5"), ("warm", "number")):
            self.browser.run(f"document.querySelector(\"{row(key)} .figure\").focus()")
            self.browser.press(*typed, KEYS["enter"])
            self.await_text(f"{row(key)} .trouble", reason)
            self.browser.press(KEYS["escape"])
            self.await_figure(key, before)

    def test_an_offline_device_is_dim_and_its_value_is_held(self):
        key = "attic-fan/speed"
        self.stage.away("attic-fan")
        card = "[data-device='attic-fan']"
        try:
            self.browser.wait("return document.querySelector(arguments[0]).hasAttribute('data-offline')", card)
            self.await_text(f"{card} .tile-state", "Offline")
            self.await_text("[data-only=offline]", "1 offline")
            self.browser.click(f"{row(key)} [aria-label$=': more']")
            self.await_progress(key, "waiting")
            self.browser.wait("return /^Held · \\d+ s left$/.test(document.querySelector(arguments[0] + ' .status').textContent)", row(key))
            first = self.status(key)
            self.browser.wait("return document.querySelector(arguments[0] + ' .status').textContent !== arguments[1]", row(key), first, what="the time runs")
            self.assertRegex(self.status(key), r"^Held · \d+ s left$")
        finally:
            self.stage.away("attic-fan", False)
        self.await_progress(key, "confirmed")
        self.browser.wait("return !document.querySelector(arguments[0]).hasAttribute('data-offline')", card)

    def test_a_change_at_the_device_moves_the_number(self):
        self.stage.report("sign/volume", "0.75")
        self.await_figure("sign/volume", "0.75")
        self.stage.report("desk-lamp/power", "false")
        self.browser.wait("return document.querySelector(\"[data-key='desk-lamp/power'] [role=switch]\").ariaChecked === 'false'")

    def test_a_gateway_that_is_killed_during_a_drag_gets_the_value_after_its_restart(self):
        key = "desk-lamp/brightness"
        self.drag(key, [0.3, 0.35, 0.4])
        self.await_progress(key, "confirmed")
        self.stage.stop_gateway()
        self.addCleanup(lambda: self.stage.gateway.poll() is None or self.stage.start_gateway())
        self.await_text("#link-text", "Reconnecting")
        self.await_text("#banner", "What you change is sent when it is back")
        self.slide(key, 0.8)
        shown = self.figure(key)
        self.assertGreater(int(shown), 190)
        self.assertEqual(self.progress(key), "unsent")
        # Meanwhile a device changes by itself.
        self.stage.report("sign/volume", "0.25")
        self.stage.start_gateway()
        self.await_text("#link-text", "Live")
        self.await_progress(key, "confirmed")
        self.assertEqual(self.figure(key), shown)
        self.assertEqual(self.stage.told(key)[-1], shown)
        self.browser.wait("return settlePanel.house.find('sign/volume').shown === 0.25")
        # The finger is still down and holds the control.
        self.slide(key, 0.6)
        later = self.figure(key)
        self.assertLess(int(later), 170)
        self.browser.lift()
        self.await_progress(key, "confirmed")
        self.assertEqual(self.stage.told(key)[-1], later)
        self.assertTrue(self.browser.run("return document.querySelector('#banner').hidden"))

    def test_an_offline_broker_is_shown(self):
        self.stage.broker.kill()
        self.stage.broker.wait()
        self.await_text("#banner", "The MQTT broker is away")
        self.await_text("#link-text", "Broker away")
        self.browser.run("window.scrollTo(0, 1e6)")
        self.assertGreaterEqual(self.browser.run("return document.querySelector('#banner').getBoundingClientRect().top"), 0)
        self.browser.click(f"{row('desk-lamp/brightness')} [aria-label$=': more']")
        self.await_progress("desk-lamp/brightness", "waiting")
        self.stage.devices.close()
        # The devices must be online before the gateway starts.
        self.stage.gateway.send_signal(signal.SIGSTOP)
        try:
            self.stage.start_broker()
            self.stage.start_devices()
        finally:
            self.stage.gateway.send_signal(signal.SIGCONT)
        self.browser.wait("return document.querySelector('#banner').hidden")
        self.await_progress("desk-lamp/brightness", "confirmed")

    def test_reloaded_devices_appear_and_disappear(self):
        path = os.path.join(self.stage.folder, "devices", "more.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("cellar: {name: Cellar, properties: {level: {type: integer, range: [0, 9], command: {topic: cmd/cellar/level, payload: $value}}}}\n")
        self.stage.gateway.send_signal(signal.SIGHUP)
        self.browser.wait("return document.querySelector(\"[data-device='cellar']\")")
        os.remove(path)
        self.stage.gateway.send_signal(signal.SIGHUP)
        self.browser.wait("return !document.querySelector(\"[data-device='cellar']\")")


class Together(Case):
    """Two browsers at once."""

    def test_two_users_see_each_other_and_do_not_interfere(self):
        other = Browsers.browser()
        self.addCleanup(other.close)
        self.open(other)
        key = "desk-lamp/brightness"
        self.figure(key, other)
        self.drag(key, [0.5, 0.6, 0.7])
        shown = self.figure(key)
        self.await_figure(key, shown, other)
        self.assertEqual(self.progress(key, other), "settling")
        self.browser.lift()
        self.await_progress(key, "confirmed", browser=other)
        # Both hold the control; each sees its own value, and the last to move wins.
        self.take(key, 0.2)
        wait_for(lambda: str(self.stage.get(f"v1/devices/{key}")["target"]) == self.figure(key), what="the first has arrived")
        self.take(key, 0.9, other)
        wait_for(lambda: str(self.stage.get(f"v1/devices/{key}")["target"]) == self.figure(key, other), what="the second has arrived")
        mine, theirs = self.figure(key), self.figure(key, other)
        self.assertNotEqual(mine, theirs)
        time.sleep(0.2)
        self.assertEqual((self.figure(key), self.figure(key, other)), (mine, theirs))
        self.browser.lift()
        other.lift()
        self.await_progress(key, "confirmed")
        self.await_progress(key, "confirmed", browser=other)
        self.assertEqual(self.figure(key), theirs)
        self.assertEqual(self.figure(key, other), theirs)
        self.assertEqual(other.complaints(), [])
