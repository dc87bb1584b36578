# Settle
# SPDX-License-Identifier: Apache-2.0
"""The promises of the page, through networks that are not kind."""

import datetime
import json
import os
import threading
import time
import unittest
import urllib.parse
import urllib.request

from case import HERE, Browsers, Case, row
from proxy import CUT, DEAFEN, LOSE, PASS, SWALLOW, Proxy, is_change
from stage import HOME, STATES, wait_for

WORDS = [f"w{number}" for number in range(10)]
MORE = f"""
keypad:
  name: Keypad
  properties:
    press: {{type: action, values: [{", ".join(WORDS)}], command: {{topic: cmd/keypad/press, payload: $value}}}}
scenes:
  evening: {{desk-lamp: {{brightness: 20}}, boiler: {{mode: auto}}}}
"""
#: How long a press may take to the gateway, in seconds.
MOMENT = 2.0


def setUpModule():
    Browsers.start()


def every(count, kind, otherwise=PASS):
    """A rule for each change whose number is a multiple of `count`."""
    numbers = iter(range(1, 1_000_000))
    return lambda request: otherwise if not is_change(request) else kind if next(numbers) % count == 0 else PASS


class Witness:
    """The events of the gateway, read without the proxy."""

    def __init__(self, url):
        self.events = []
        self.answer = urllib.request.urlopen(url + "v1/events", timeout=60)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for line in self.answer:
                if line.startswith(b"data: {\"id\""):
                    self.events.append(json.loads(line[6:]))
        except (OSError, ValueError, AttributeError):
            pass

    def accepted(self, key):
        """Each accepted value of a key, with the time of its acceptance."""
        return [(event["value"], moment(event["at"])) for event in list(self.events) if event["key"] == key and event["phase"] == "accepted"]


def moment(text):
    """Seconds since 1970."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Network(Case):
    settings = {"devices": HOME + MORE}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        direct = urllib.parse.urlsplit(cls.stage.url)
        cls.proxy = Proxy(direct.port)
        cls.addClassCleanup(cls.proxy.close)
        cls.direct, cls.stage.url = cls.stage.url, cls.proxy.url.rstrip("/") + direct.path

    def setUp(self):
        self.proxy.reset()
        super().setUp()
        # The next request is the page's next change.
        time.sleep(0.3)
        self.witness = Witness(self.direct)
        self.browser.run("""
            globalThis.given = []; globalThis.told = []; globalThis.announced = [];
            const { listener } = settlePanel.link.outbox, { dropped } = listener;
            listener.dropped = (entry, reason) => { told.push([entry.key, reason]); dropped(entry, reason); };
            const { alert } = settlePanel;
            settlePanel.alert = (text) => { announced.push(text); alert.call(settlePanel, text); };""")

    def tearDown(self):
        self.proxy.reset()
        super().tearDown()

    def is_expected(self, complaint):
        return "net::ERR" in complaint or "Failed to load resource" in complaint or "410" in complaint

    def settle(self):
        """Waits until the page knows what became of each change."""
        self.browser.wait("return settlePanel.link.outbox.isEmpty", what="all is sent or dropped")

    # Presses, by kind of network

    def press(self, apart):
        """Presses all buttons of the keypad, in order; returns when each was pressed."""
        return self.browser.run(f"""
            const buttons = [...document.querySelectorAll("{row('keypad/press')} .button")].filter((button) => !button.closest(".orders"));
            const times = [];
            return new Promise((done) => {{
              const next = () => {{
                times.push(Date.now() / 1000);
                buttons[times.length - 1].click();
                if (times.length === {len(WORDS)}) done(times); else setTimeout(next, {apart});
              }};
              next();
            }});""")

    def networks(self):
        """Name, one way and jitter in seconds, rule, event, and for how long something is under way that the page has given up."""
        def outage(seconds):
            def fail():
                self.proxy.stop()
                threading.Timer(seconds, setattr, [self.proxy, "is_down", False]).start()
            return fail
        for network in [
            ("0 ms", 0, 0, None, None, 0.5),
            ("150 ms", 0.075, 0, None, None, 0.5),
            ("300 ms", 0.15, 0, None, None, 0.5),
            ("600 ms", 0.3, 0, None, None, 0.5),
            ("600 ms each way", 0.6, 0, None, None, 0.5),
            ("reordered, up to 400 ms", 0, 0.2, None, None, 0.5),
            ("every third answer lost", 0, 0, lambda: every(3, LOSE), None, 0.5),
            ("every third answer hangs", 0, 0, lambda: every(3, DEAFEN), None, 0.5),
            ("every third request cut", 0, 0, lambda: every(3, CUT), None, 0.5),
            ("every third cut, comes 0.7 s later", 0, 0, lambda: every(3, ("late", 0.7)), None, 1),
            ("every third cut, comes 3 s later", 0, 0, lambda: every(3, ("late", 3)), None, 3.5),
            ("every third held for 1 s", 0, 0, lambda: every(3, ("hold", 1)), None, 1.5),
            ("every third held for 6 s", 0, 0, lambda: every(3, ("hold", 6)), None, 6.5),
            ("every third swallowed", 0, 0, lambda: every(3, SWALLOW), None, 0.5),
            ("150 ms, every second answer lost", 0.075, 0, lambda: every(2, LOSE), None, 0.5),
            ("away for 1 s", 0, 0, None, outage(1), 0.5),
            ("away for 5 s", 0, 0, None, outage(5), 0.5),
        ]:
            yield network

    def test_presses_are_published_once_in_order_and_in_time_or_their_loss_is_told(self):
        titles = ["network", "given", "published", "told", "lost", "late", "doubled", "disorder", "oldest"]
        table = [titles]
        for name, one_way, jitter, rule, event, after in self.networks():
            with self.subTest(name):
                self.proxy.reset()
                self.setUp()
                self.browser.find(row("keypad/press"))
                before = len(self.witness.accepted("keypad/press"))
                self.proxy.delay, self.proxy.jitter = one_way, jitter
                # A clock that was read in a kind network is no help in this one.
                self.browser.run("settlePanel.link.restart()")
                self.browser.wait("return settlePanel.link.state === 'live' && !settlePanel.link.abort?.signal.aborted")
                time.sleep(2 * one_way + 0.2)
                if rule:
                    self.proxy.rule = rule()
                if event:
                    event()
                pressed = dict(zip(WORDS, self.press(120)))
                self.settle()
                # What is still under way in the network comes before the table is made.
                time.sleep(after)
                self.proxy.reset()
                accepted = self.witness.accepted("keypad/press")[before:]
                wait_for(lambda: len(self.stage.told("keypad/press")) >= len(accepted))
                words = [value for value, _ in accepted]
                told = [entry for entry in self.browser.run("return told") if entry[0] == "keypad/press"]
                ages = {value: at - pressed[value] for value, at in accepted}
                lost = len(WORDS) - len(set(words)) - len(told)
                doubled = len(words) - len(set(words))
                late = sum(age > MOMENT + one_way + jitter + 0.1 for age in ages.values())
                disorder = sum(a > b for a, b in zip(words, words[1:]))
                table.append([name, len(WORDS), len(words), len(told), lost, late, doubled, disorder, f"{max(ages.values(), default=0):.2f} s"])
                self.assertEqual((lost, late, doubled, disorder), (0, 0, 0, 0), (words, told, ages))
                if not rule and not event and one_way < 0.5:
                    self.assertEqual(words, WORDS)
        widths = [max(len(str(line[place])) for line in table) for place in range(len(titles))]
        print()
        for line in table:
            print("  ".join(str(cell).ljust(width) for cell, width in zip(line, widths)))

    # STOP, and other keys

    def change(self, key):
        """Steps a number up."""
        self.browser.click(f"{row(key)} [aria-label$=': more']")

    def stop(self):
        self.browser.click(f"{row('hall-blind/command')} [aria-label$=': Stop']")

    def stopped(self):
        return "STOP" in [value for value, _ in self.witness.accepted("hall-blind/command")]

    def test_the_page_is_back_soon_after_an_outage(self):
        for seconds in (1, 3, 6):
            with self.subTest(seconds=seconds):
                self.proxy.stop()
                time.sleep(seconds)
                self.assertEqual(self.browser.run("return settlePanel.link.state"), "lost")
                self.proxy.is_down = False
                start = time.monotonic()
                self.browser.wait("return settlePanel.link.state === 'live'", seconds=10)
                took = time.monotonic() - start
                print(f"back {took:.1f} s after an outage of {seconds} s")
                self.assertLess(took, 2)

    def test_stop_does_not_wait_for_another_device(self):
        self.proxy.rule = lambda request: ("hold", 6) if b"desk-lamp" in request else PASS
        self.change("desk-lamp/brightness")
        wait_for(lambda: any(b"desk-lamp" in request for _, request, _ in self.proxy.requests))
        self.stop()
        wait_for(self.stopped, what="STOP arrives")
        self.assertEqual(self.witness.accepted("desk-lamp/brightness"), [])
        self.proxy.reset()
        self.settle()

    def test_stop_arrives_while_everything_else_hangs(self):
        self.proxy.rule = lambda request: PASS if b"STOP" in request else SWALLOW
        for key in ("desk-lamp/brightness", "boiler/target_temperature", "attic-fan/speed", "garden-pump/flow", "sign/volume"):
            self.change(key)
            time.sleep(0.1)
        self.browser.run("settlePanel.link.refresh(); settlePanel.link.refreshKey('boiler/mode'); settlePanel.link.get('v1/status').catch(() => {});")
        self.stop()
        wait_for(self.stopped, what="STOP arrives")
        self.assertEqual(self.witness.accepted("boiler/target_temperature"), [])
        self.proxy.reset()
        self.settle()
        self.assertEqual(len(self.witness.accepted("boiler/target_temperature")), 1)

    def test_stop_overtakes_a_press_of_its_key_that_hangs(self):
        self.proxy.rule = lambda request: ("hold", 1.5) if b"OPEN" in request and b"STOP" not in request else PASS
        self.browser.click(f"{row('hall-blind/command')} [aria-label$=': Open']")
        self.stop()
        wait_for(self.stopped, what="STOP arrives")
        # What hung comes, and is refused.
        time.sleep(3)
        self.settle()
        self.assertEqual(self.witness.accepted("hall-blind/command")[-1][0], "STOP")

    def test_keys_do_not_wait_for_each_other(self):
        self.proxy.rule = lambda request: ("hold", 6) if b"desk-lamp" in request else PASS
        self.change("desk-lamp/brightness")
        wait_for(lambda: any(b"desk-lamp" in request for _, request, _ in self.proxy.requests))
        self.change("boiler/target_temperature")
        wait_for(lambda: self.witness.accepted("boiler/target_temperature"), what="the other key arrives")
        self.assertEqual(self.witness.accepted("desk-lamp/brightness"), [])
        self.proxy.reset()
        self.settle()

    # Too late

    def test_a_press_in_an_outage_is_dropped_and_says_so(self):
        self.browser.find(row("keypad/press"))
        self.stage.stop_gateway()
        self.addCleanup(lambda: self.stage.gateway.poll() is None or self.stage.start_gateway())
        self.browser.wait("return settlePanel.link.state === 'lost'")
        self.browser.click(f"{row('keypad/press')} .button")
        self.await_text(f"{row('keypad/press')} .status", "Not sent yet")
        self.await_text(f"{row('keypad/press')} .trouble", "not sent")
        self.await_text("#alerts", "Keypad, Press: Failed: the gateway could not be reached within 2 s")
        before = len(self.stage.told("keypad/press"))
        self.stage.start_gateway()
        self.browser.wait("return document.getElementById('link').dataset.state === 'live'")
        self.settle()
        time.sleep(1)
        self.assertEqual(len(self.stage.told("keypad/press")), before)

    def test_a_press_that_the_network_delivers_late_is_refused(self):
        self.browser.find(row("keypad/press"))
        self.proxy.rule = lambda request: ("late", 3) if b"keypad" in request else PASS
        self.browser.click(f"{row('keypad/press')} .button")
        wait_for(lambda: any(b"keypad" in request for _, request, _ in self.proxy.requests))
        self.proxy.stop()
        time.sleep(2.5)
        self.proxy.is_down = False
        self.proxy.rule = lambda request: PASS
        self.await_text(f"{row('keypad/press')} .trouble", "not sent")
        time.sleep(2)
        self.assertEqual(self.witness.accepted("keypad/press"), [])

    def test_a_scene_in_an_outage_says_that_it_waits_and_that_it_was_dropped(self):
        self.proxy.stop()
        self.browser.wait("return settlePanel.link.state === 'lost'")
        self.await_text("#banner", "a button or a scene only within 2 s")
        self.browser.click(".scene")
        self.await_text(".scene", "Not sent yet")
        self.await_text(".scene", "not sent")
        self.await_text("#alerts", "Evening: Failed: the gateway could not be reached within 2 s")
        with open(os.path.join(HERE, "checks.js"), encoding="utf-8") as file:
            self.assertEqual(self.browser.run(file.read())["problems"], [])
        self.proxy.reset()
        self.browser.wait("return document.getElementById('link').dataset.state === 'live'")
        time.sleep(1)
        self.assertEqual(self.witness.accepted("boiler/mode"), [])
        # One that lasts less long.
        self.proxy.stop()
        self.browser.wait("return settlePanel.link.state === 'lost'")
        self.browser.click(".scene")
        time.sleep(0.5)
        self.proxy.reset()
        self.browser.wait("return document.querySelector('.scene').dataset.progress === 'done'")
        self.settle()
        self.assertEqual(len(self.witness.accepted("boiler/mode")), 1)

    def test_a_press_is_done_whose_answer_and_events_came_before_the_stream_was_back(self):
        key = "keypad/press"
        self.browser.find(row(key))
        self.proxy.rule = lambda request: DEAFEN if is_change(request) else ("hold", 0.7) if b"/v1/events" in request else PASS
        self.browser.run("settlePanel.press(settlePanel.house.find(arguments[0]), 'w3'); settlePanel.link.restart();", key)
        self.await_progress(key, "done")
        self.settle()
        self.assertEqual([value for value, _ in self.witness.accepted(key)], ["w3"])

    # Values

    def test_a_value_is_not_followed_by_an_older_one_that_comes_late(self):
        key = "desk-lamp/brightness"
        self.figure(key)
        numbers = iter(range(100))
        self.proxy.rule = lambda request: ("late", 1.5) if b"desk-lamp" in request and next(numbers) == 0 else PASS
        self.drag(key, [0.2])
        wait_for(lambda: any(b"desk-lamp" in request for _, request, _ in self.proxy.requests))
        self.slide(key, 0.7)
        self.browser.lift()
        shown = self.figure(key)
        time.sleep(3)
        self.settle()
        self.await_progress(key, "confirmed")
        self.assertEqual(self.stage.told(key)[-1], shown)
        self.assertEqual(self.figure(key), shown)

    def test_the_last_value_is_sent_although_the_page_is_closed_at_once(self):
        key = "desk-lamp/brightness"
        self.figure(key)
        self.proxy.delay = 0.3
        told = len(self.stage.told(key))
        self.drag(key, [0.2])
        wait_for(lambda: any(b"desk-lamp" in request for _, request, _ in self.proxy.requests))
        self.slide(key, 0.7)
        shown = self.figure(key)
        self.browser.open("about:blank")
        self.browser.lift()
        wait_for(lambda: self.stage.told(key)[told:])
        time.sleep(1)
        self.assertEqual(self.stage.told(key)[-1], shown)

    def test_the_last_value_of_a_drag_arrives(self):
        key = "porch-light/brightness"
        self.figure(key)
        for name, one_way, jitter, rule in [("600 ms", 0.3, 0, None), ("reordered", 0, 0.3, None), ("answers lost", 0, 0, LOSE), ("cut", 0.05, 0, ("late", 0.7)), ("hangs", 0, 0, SWALLOW)]:
            with self.subTest(name):
                self.proxy.delay, self.proxy.jitter = one_way, jitter
                if rule:
                    self.proxy.rule = every(3, rule)
                self.drag(key, [0.1 + 0.8 * step / 20 for step in range(21)], seconds=0.05)
                self.slide(key, 0.5)
                self.browser.lift()
                shown = self.figure(key)
                self.settle()
                time.sleep(1.5)
                self.proxy.reset()
                self.await_progress(key, "confirmed")
                self.assertEqual((self.stage.told(key)[-1], self.figure(key)), (shown, shown))
                self.stage.report(key, "60")
                self.await_figure(key, "60")


if __name__ == "__main__":
    unittest.main()
