# Settle
# SPDX-License-Identifier: Apache-2.0
"""The page's decisions, without network and drawing."""

import json
import os
import re

from case import Browsers, Case
from stage import ROOT


def setUpModule():
    Browsers.start()


class Parts(Case):
    """The page's decisions, without network and drawing."""

    def module(self, name, body):
        return self.browser.run(f"return (async () => {{ const m = await import(new URL('{name}.js', document.querySelector('script[type=module]').src)); {body} }})()")

    FACTS = {"key": "a/b", "type": "integer", "range": [0, 100], "delay_ms": 300, "max_wait_ms": 1000, "can_confirm": True,
             "target": 10, "actual": 10, "phase": "confirmed", "age_ms": 5000, "pending": None, "failure": None, "online": True}

    def key(self, body):
        facts = json.dumps(self.FACTS)
        return self.module("house", f"const facts = {facts}; const key = new m.Key(facts, {{}}, 'b'); key.row(facts, 0); const seen = [];"
                           f"const look = (now) => seen.push([key.shown, key.progress(now).name]); {body} return seen;")

    def test_between_accepted_and_its_result_the_value_does_not_fall_back(self):
        seen = self.key("""
            key.ask(20, 0); key.sent("x1"); look(1);
            key.event({ id: "x1", phase: "accepted", value: 20, collapsed: 0, attempt: 1 }, 2, 2); look(2);
            key.row({ ...facts, target: 20, phase: "accepted", pending: { value: 20, collapsed: 0, waits: "quiet", due_ms: 290 } }, 3); look(3);
            key.row({ ...facts, target: 20, phase: "sent" }, 400); look(400);""")
        self.assertEqual(seen, [[20, "settling"], [20, "settling"], [20, "settling"], [20, "sent"]])

    def test_older_answers_and_rows_do_not_change_the_last_target(self):
        seen = self.key("""
            key.hold(true); key.ask(20, 0); key.sent("x1"); key.ask(30, 10); key.sent("x2");
            key.event({ id: "x1", phase: "accepted", value: 20, collapsed: 0, attempt: 1 }, 12, 12);
            key.row({ ...facts, target: 20, phase: "accepted" }, 12); look(12);
            key.event({ id: "x2", phase: "accepted", value: 30, collapsed: 1, attempt: 1 }, 14, 14);
            key.row({ ...facts, target: 30, phase: "accepted" }, 14); look(14);
            key.row({ ...facts, target: 99, phase: "accepted" }, 20); look(20);
            key.hold(false); look(21);""")
        self.assertEqual([shown for shown, _ in seen], [30, 30, 30, 99])

    def test_the_ring_is_capped_by_the_longest_wait(self):
        seen = self.key("""
            for (let now = 0; now <= 900; now += 100) key.ask(now / 10, now);
            seen.push(key.progress(900).due);""")
        self.assertEqual(seen, [1000])

    def test_the_ring_shows_the_rest_of_the_shortest_interval(self):
        seen = self.key("""
            key.describe({ ...facts, leading: true, delay_ms: 200, max_wait_ms: 200, min_interval_ms: 200 });
            const sending = (now) => key.event({ id: "x1", phase: "sending", value: 20, collapsed: 0, attempt: 1 }, now, now);
            key.ask(20, 0); look(0); sending(0); key.ask(21, 10); sending(200);
            key.ask(22, 212); look(212); seen.push(key.progress(212).due);""")
        self.assertEqual(seen, [[20, "sending"], [22, "settling"], 400])

    def test_a_refusal_restores_the_value_and_is_shown(self):
        seen = self.key("""
            key.ask(20, 0); key.sent("x1"); key.refused("x1", "no", 5); look(6); seen.push(key.progress(6).value, key.progress(6).reason);
            key.ask(30, 10); look(11);""")
        self.assertEqual(seen, [[10, "failed"], 20, "no", [30, "settling"]])

    def test_an_answer_does_not_undo_what_the_stream_reported_after_its_request(self):
        facts = json.dumps(self.FACTS)
        seen = self.module("house", f"""
            const facts = {facts}, waiting = {{ ...facts, phase: "accepted", pending: {{ value: 20, collapsed: 0, waits: "offline", due_ms: null }} }};
            const answer = (row, online) => ({{ devices: [{{ id: "a", name: "A", online, properties: {{ b: {{ ...row, online }} }} }}] }});
            const house = new m.House(); house.load(answer(waiting, false), 0, 0);
            const key = house.find("a/b"), seen = [], look = () => seen.push([key.progress(0).name, key.device.online]);
            look(); key.row({{ ...facts, target: 20, actual: 20 }}, 50); look();
            house.load(answer(waiting, false), 90, 40); look();
            key.row({{ ...waiting, online: false }}, 90, 40); look();
            house.load(answer(waiting, false), 99, 60); look();
            return seen;""")
        self.assertEqual(seen, [["waiting", False], ["confirmed", True], ["confirmed", True], ["confirmed", True], ["waiting", False]])

    def test_a_stream_may_be_cut_anywhere(self):
        seen = self.module("link", r"""
            const text = 'retry: 2000\n\n: \n\nid: 7\ndata: {"a":1}\n\nevent: state\ndata: {"b":"é"}\r\n\r\nid: 8\ndata: x\ndata: y\n\n';
            const results = new Set();
            for (let size = 1; size < text.length; size += 1) {
              const seen = [];
              const events = new m.EventText((...event) => seen.push(event));
              for (let at = 0; at < text.length; at += size) events.take(text.slice(at, at + size));
              results.add(JSON.stringify(seen));
            }
            return [...results];""")
        self.assertEqual([json.loads(line) for line in seen],
                         [[["message", "7", '{"a":1}'], ["state", None, '{"b":"é"}'], ["message", "8", "x\ny"]]])

    def test_numbers_and_colors(self):
        seen = self.module("values", """
            const key = { type: "number", range: [5, 30], step: 0.5 };
            return [m.snapped(key, 21.26), m.snapped(key, 99), m.snapped({ ...key, range: [0.1, 1], step: 0.1 }, 0.30000000000000004),
                    m.textOf(key, 21), m.textOf({ type: "integer" }, 40), m.textOf(key, null),
                    m.readable("OPEN"), m.readable("target_temperature"), m.duration(300), m.duration(2500), m.changes(1)];""")
        self.assertEqual(seen, [21.5, 30, 0.3, "21.0", "40", "–", "Open", "Target temperature", "300 ms", "2.5 s", "1 change"])

    def test_long_times_are_in_large_units(self):
        seen = self.module("values", """
            const minutes = { type: "integer", unit: "min" };
            return [m.spoken(minutes, 1440), m.spoken(minutes, 90), m.spoken(minutes, 150), m.spoken({ type: "integer", unit: "s" }, 10800),
                    m.duration(86_400_000), m.duration(7_200_000), m.duration(600_000), m.duration(3 * 86_400_000)];""")
        self.assertEqual(seen, ["24 h", "90 min", "2 h 30 min", "3 h", "24 h", "2 h", "10 min", "3 days"])

    def test_numbers_are_shown_as_people_read_them(self):
        seen = self.module("values", """
            const percent = { type: "integer", range: [0, 254], step: 1, display: { unit: "%", scale: { from: [0, 254], to: [0, 100] } } };
            const kelvin = { type: "integer", range: [150, 500], step: 1, unit: "mired", display: { unit: "K", scale: "mired" } };
            return [m.spoken(percent, 127), m.inward(percent, 50), m.stepped(percent, 127, 1), m.stepped(percent, 254, 1),
                    m.spoken(kelvin, 250), m.inward(kelvin, 2700), m.stepped(kelvin, 250, 1), m.short(percent, 254)];""")
        self.assertEqual(seen, ["50 %", 127, 130, 254, "4000 K", 370, 244, "100 %"])

    def test_all_tiles_are_equally_wide_and_small_areas_share_rows(self):
        places = self.module("page", """return [[[9, 8, 6, 4, 5, 3, 5, 1], 5], [[2, 1], 2], [[5], 5], [[1, 1], 5], [[3, 3, 3], 1], [[7, 2], 3]]
            .map(([counts, columns]) => m.placesOf(counts, columns).map(({ from, span, rows }) => [from, span, rows]))""")
        self.assertEqual(places[0], [[1, 5, 2], [1, 5, 2], [1, 3, 2], [4, 2, 2], [1, 3, 2], [4, 2, 2], [1, 3, 2], [4, 1, 1]])
        self.assertEqual(places[1:], [[[1, 2, 1], [1, 1, 1]], [[1, 5, 1]], [[1, 1, 1], [2, 1, 1]], [[1, 1, 3]] * 3, [[1, 3, 3], [1, 2, 1]]])

    def test_areas_stay_in_their_order_when_devices_move_in_one(self):
        seen = self.module("house", """
            const order = new m.Order({ get: (name, otherwise) => (name === "order" ? ["c", "b"] : otherwise) });
            const devices = [["a", "Hall"], ["b", "Kitchen"], ["c", "Kitchen"], ["d", "Kitchen"]].map(([id, area]) => ({ id, area }));
            return order.sections(devices).map((section) => [section.name, section.devices.map(({ id }) => id)]);""")
        self.assertEqual(seen, [["Hall", ["a"]], ["Kitchen", ["c", "b", "d"]]])

    def test_a_busy_page_draws_at_beats(self):
        times = self.module("dom", """
            const node = document.createElement("div"), pace = new m.Pace(node);
            const draws = async () => { const at = []; for (let n = 0; n < 4; n += 1) at.push(await new Promise((done) => pace.plan(() => done(performance.now())))); return at[3] - at[0]; };
            const calm = [await draws(), node.hasAttribute("data-busy")];
            pace.count(40, performance.now());
            return [calm, [await draws(), node.hasAttribute("data-busy")]];""")
        self.assertFalse(times[0][1])
        self.assertTrue(times[1][1])
        self.assertGreater(times[1][0], 300)

    def test_colors_keep_their_hue_and_brightness(self):
        seen = self.module("values", """
            return [m.hexOf({ x: 0.64, y: 0.33 }), m.hexOf({ h: 120, s: 100 }), m.hueOf("#ff8000").h, m.recolored("#800000", 120, 100),
                    m.recolored("#000000", 120, 100), m.recolored({ h: 3, s: 4 }, 120, 50), m.recolored("#ff0000", 200, 0)];""")
        self.assertEqual(seen, ["#ff0000", "#00ff00", 30, "#008000", "#00ff00", {"h": 120, "s": 50}, "#ffffff"])

    def test_the_gateways_time_is_known_as_well_as_the_best_answer_says(self):
        seen = self.module("link", """
            const clock = new m.Clock(), seen = [], sample = (...times) => { clock.sample(...times); seen.push(clock.at(0)); };
            const now = performance.now();
            sample(1000 + now, now, now + 400); sample(900 + now, now, now + 20); sample(1000 + now, now - 300, now + 300);
            sample(5000 + now, now - 300, now + 300); sample(5100 + now, now, now + 800);
            return seen.map(Math.round);""")
        # A longer way changes nothing, unless the time cannot be right.
        self.assertEqual(seen, [800, 890, 890, 5000, 5000])

    def test_a_number_that_can_be_read_in_two_ways_is_explained(self):
        seen = self.module("values", """return ["1.000", "12,5", "1,234,567", "1.500,5", "warm", "1..2"].map(m.unreadable);""")
        self.assertEqual(seen, ["“1.000” can be 1000 or 1. Type one of them.", "“12,5” is not a number here. Is it 12.5?",
                                "“1,234,567” is not a number here. Is it 1234567?", "“1.500,5” is not a number here. Is it 1500.5?",
                                "“warm” is not a number", "“1..2” is not a number"])

    def test_numbers_are_read_as_people_write_them(self):
        seen = self.module("values", """
            const german = { digits: [..."0123456789"], point: "," }, arabic = { digits: [..."٠١٢٣٤٥٦٧٨٩"], point: "٫" };
            const english = { digits: german.digits, point: "." };
            return [m.readNumber("21,5", german), m.readNumber("21.5", german), m.readNumber("1.500", german), m.readNumber("1.500,5", german),
                    m.readNumber("٢١٫٥", arabic), m.readNumber("21.5", english), m.readNumber("21,5", english), m.readNumber("−3", german), m.readNumber("warm", german)];""")
        self.assertEqual(seen, [21.5, 21.5, None, None, 21.5, 21.5, None, -3, None])

    def test_every_language_has_every_text(self):
        with open(os.path.join(ROOT, "Sources/Panel/Resources/words.js"), encoding="utf-8") as file:
            text = file.read()
        blocks = dict(re.findall(r"^  (\w\w): \{\n(.*?)^  \},", text, re.M | re.S))
        # What devices say has a block of its own in each: every class in every language, and of names those that read badly.
        inner = {name: dict(re.findall(r"^    (classes|names): \{(.*?)\},\n", block, re.M | re.S)) for name, block in blocks.items()}
        classes = {name: sorted(re.findall(r"(\w+): \[\"[^\"]+\", \"[^\"]+\"\]", parts["classes"])) for name, parts in inner.items()}
        self.assertGreater(len(classes["en"]), 20)
        tables = {}
        for name, block in blocks.items():
            for part in inner[name].values():
                block = block.replace(part, "")
            tables[name] = sorted(re.findall(r"(?<![\w.])(\w+): (?:[\"(]|n =>)", block))
        self.assertGreater(len(tables["en"]), 80)
        for name, words in tables.items():
            self.assertEqual(words, tables["en"], name)
            self.assertEqual(classes[name], classes["en"], name)
