# Settle
# SPDX-License-Identifier: Apache-2.0
"""What a person may expect, and what not."""

import unittest

from belief import Belief
from house import Site, cover, lamp, plain, thermostat
from intents import ACCEPTED, LOST, REFUSED, REJECTED, Answer, Change, Failed, Part, Restart, rejection
from model import Finding, SiteModel
from order import Message, MessageOrder


class Story:
    """A site, what happens there, and what is expected afterwards."""

    def __init__(self, *devices, groups=None, **states):
        self.site = Site("site", list(devices), groups or {})
        initial = {device.name: {name: part.initial for name, part in device.properties.items()} for device in devices}
        for key, value in states.items():
            initial[devices[0].name][key] = value
        self.initial, self.records, self.doubts, self.hands = initial, [], {}, {}

    def ask(self, target, verb="set", argument=None, status=ACCEPTED, value=None, at=None):
        number = len(self.records) + 1
        change = Change(number, number if at is None else at, 1, "socket", verb, target, argument, id=f"g{number}")
        wanted = argument if verb == "many" else {target.partition("/")[2]: argument}
        device = target.partition("/")[0]
        for name, part_argument in wanted.items():
            answer = change.answers[f"{device}/{name}"] = Answer(status, value)
            if verb not in ("flush", "cancel"):
                for member in self.site.groups.get(device, [device]):
                    change.parts.append(Part(change, member, name, "set" if verb == "many" else verb, part_argument,
                                             answer, is_of_group=device in self.site.groups))
        self.records.append(change)
        return self

    def happens(self, record):
        self.records.append(record)
        return self

    def model(self):
        model = SiteModel(self.site, self.initial, doubts=self.doubts, hands=self.hands)
        model.play(self.records)
        return model

    def allowed(self, key, *values):
        return [value for value in values if self.model().expectation(key).final.allows(value)]

    def kinds(self):
        return [finding.kind for finding in self.model().findings]


class ModelTests(unittest.TestCase):
    def dial(self):
        return Story(plain("dial", True))

    def test_the_last_accepted_value_counts(self):
        story = self.dial().ask("dial/level", argument=1).ask("dial/level", argument=2)
        self.assertEqual(story.allowed("dial/level", 0, 1, 2), [2])

    def test_what_was_not_answered_may_or_may_not_have_happened(self):
        story = self.dial().ask("dial/level", argument=1).ask("dial/level", argument=2, status=LOST)
        self.assertEqual(story.allowed("dial/level", 0, 1, 2), [1, 2])

    def test_a_rejected_value_has_not_happened_and_is_found(self):
        story = self.dial().ask("dial/level", argument=1).ask("dial/level", argument=2, status=REJECTED)
        self.assertEqual(story.allowed("dial/level", 0, 1, 2), [1])
        self.assertEqual(story.kinds(), ["rejected"])

    def test_a_step_counts_from_the_last_value(self):
        self.assertEqual(self.dial().ask("dial/level", argument=5).ask("dial/level", "step", 3, value=8).kinds(), [])
        self.assertEqual(self.dial().ask("dial/level", argument=5).ask("dial/level", "step", 3, value=3).kinds(), ["step"])

    def test_a_step_may_count_from_what_was_acknowledged_last_if_what_was_replaced_may_have_left(self):
        story = Story(plain("mute", False, has_state=False), level=7)
        story.doubts = {"mute/level": Belief([5, 6])}
        for base, kinds in ((5, []), (7, []), (8, ["step"])):
            story.records = []
            self.assertEqual(story.ask("mute/level", "step", 10, value=base + 10).kinds(), kinds)
        story.ask("mute/level", argument=40).ask("mute/level", "step", 10, value=15)
        self.assertEqual(story.kinds(), ["step", "step"])
        story.records.pop()
        self.assertEqual(story.ask("mute/level", "cancel", value=1).allowed("mute/level", 5, 7), [7])
        self.assertEqual(story.ask("mute/level", "step", 10, value=15).kinds(), ["step"])

    def test_a_step_ends_at_the_range(self):
        self.assertEqual(self.dial().ask("dial/level", "step", -3, value=0).kinds(), [])

    def test_a_step_after_a_failure_may_count_from_what_is_reported(self):
        story = self.dial().ask("dial/level", argument=5).happens(Failed(1.5, "dial/level"))
        self.assertEqual(story.ask("dial/level", "step", 3, value=3).kinds(), [])

    def test_a_cancel_takes_back_the_last_value(self):
        story = self.dial().ask("dial/level", argument=1).ask("dial/level", argument=2).ask("dial/level", "cancel", value=1)
        self.assertEqual(story.allowed("dial/level", 0, 1, 2), [0, 1])

    def test_a_cancel_that_found_nothing_takes_nothing_back(self):
        story = self.dial().ask("dial/level", argument=1).ask("dial/level", "cancel", value=0)
        self.assertEqual(story.allowed("dial/level", 0, 1), [1])

    def test_a_kill_may_undo_a_cancel_soon_after_it_only(self):
        for after, allowed in ((1, [0, 1]), (10, [0])):
            story = self.dial().ask("dial/level", argument=1, at=1).ask("dial/level", "cancel", value=1, at=2)
            story.happens(Restart(2 + after, is_kill=True))
            self.assertEqual(story.allowed("dial/level", 0, 1), allowed)

    def test_a_set_point_is_snapped(self):
        story = Story(thermostat("radiator", False)).ask("radiator/target", argument=21.3, value=21.5)
        self.assertEqual((story.kinds(), story.allowed("radiator/target", 21, 21.3, 21.5)), ([], [21.5]))

    def test_brightness_turns_a_lamp_on_and_zero_off(self):
        for brightness, power in ((40, True), (0, False)):
            story = Story(lamp("lamp", "l", True), power=not power).ask("lamp/brightness", argument=brightness)
            self.assertEqual(story.allowed("lamp/power", False, True), [power])

    def test_a_kill_may_repeat_what_was_confirmed_just_before_a_hand(self):
        for at, values in ((1.5, [7, 40]), (9.0, [7])):
            story = Story(plain("dial", True), level=7)
            story.hands = {"dial/level": (1.0, 40)}
            self.assertEqual(story.happens(Restart(at, True)).allowed("dial/level", 7, 40), values)

    def test_an_off_ends_a_brightness(self):
        story = Story(lamp("lamp", "l", True)).ask("lamp/brightness", argument=40).ask("lamp/power", argument=False)
        self.assertEqual(story.allowed("lamp/power", False, True), [False])
        self.assertEqual(story.allowed("lamp/brightness", 100, 40, 7), [100, 40])

    def test_an_on_ends_a_brightness_of_0(self):
        for brightness, values in ((0, [100, 0]), (40, [40])):
            story = Story(lamp("lamp", "l", True)).ask("lamp/brightness", argument=brightness)
            self.assertEqual(story.ask("lamp/power", argument=True).allowed("lamp/brightness", 100, 40, 0), values)

    def test_an_off_leaves_what_a_dark_lamp_had_as_its_target(self):
        for target, kinds in ((60, []), (61, ["step"])):
            story = Story(lamp("lamp", "l", True))
            story.doubts = {"lamp/brightness": Belief([60])}
            story.ask("lamp/brightness", argument=40).ask("lamp/power", argument=False)
            self.assertEqual(story.ask("lamp/brightness", "step", 10, value=target + 10).kinds(), kinds)

    def test_the_stated_power_wins_in_one_change(self):
        story = Story(lamp("lamp", "l", True)).ask("lamp", "many", {"power": False, "brightness": 40})
        self.assertEqual((story.allowed("lamp/power", False, True), story.allowed("lamp/brightness", 100, 40)), ([False], [40]))

    def test_a_lamp_without_implied_power_keeps_both_apart(self):
        story = Story(lamp("lamp", "l", False)).ask("lamp/brightness", argument=40)
        self.assertEqual(story.allowed("lamp/power", False, True), [False])

    def test_a_cover_stops_on_its_way(self):
        story = Story(cover("blind", True)).ask("blind/position", argument=80).ask("blind/command", "press", "STOP")
        self.assertEqual(story.allowed("blind/position", 49, 50, 63, 80, 81), [50, 63, 80])
        self.assertEqual(story.ask("blind/position", argument=10).allowed("blind/position", 10, 50), [10])

    def test_a_word_that_failed_has_happened_or_not_unless_something_newer_counts(self):
        story = Story(cover("blind", True)).ask("blind/position", argument=10).ask("blind/command", "press", "OPEN")
        self.assertEqual(story.allowed("blind/position", 9, 10, 30, 50, 100), [100])
        story.happens(Failed(2.5, "blind/command", story.records[-1].id))
        self.assertEqual(story.allowed("blind/position", 9, 10, 30, 50, 100), [10, 30, 50, 100])
        story.ask("blind/position", argument=70).happens(Failed(3.5, "blind/command", story.records[1].id))
        self.assertEqual(story.allowed("blind/position", 10, 70), [70])

    def test_an_off_ends_a_set_point(self):
        story = Story(thermostat("radiator", False)).ask("radiator/target", argument=25).ask("radiator/mode", argument="off")
        self.assertEqual(story.allowed("radiator/target", 20, 25, 22), [20, 25])

    def test_a_late_answer_may_be_taken_for_what_a_device_has_once_the_gateway_has_forgotten_what_it_sent(self):
        for is_late, allowed in ((False, ["heat"]), (True, ["heat", "off"])):
            story = Story(thermostat("radiator", is_late)).ask("radiator/mode", argument="off")
            story.ask("radiator/mode", argument="heat")
            self.assertEqual(story.allowed("radiator/mode", "heat", "off"), ["heat"])
            story.happens(Failed(2.5, "radiator/mode"))
            self.assertEqual(story.allowed("radiator/mode", "heat", "off"), allowed)
            story.ask("radiator/mode", argument="off").happens(Restart(3.5, is_kill=True))
            story.ask("radiator/mode", argument="heat")
            self.assertEqual(story.allowed("radiator/mode", "heat", "off"), allowed)
            self.assertEqual(story.ask("radiator/mode", argument="auto").allowed("radiator/mode", "heat", "off", "auto"), ["auto"])

    def test_a_group_toggles_all_off_if_any_is_on(self):
        members = [lamp(name, name, False) for name in ("a", "b")]
        story = Story(*members, groups={"both": ["a", "b"]}, power=True)
        self.assertEqual(story.ask("both/power", "toggle", value=False).kinds(), [])
        self.assertEqual(story.allowed("b/power", False, True), [False])
        self.assertEqual(story.ask("both/power", "toggle", value=False).kinds(), ["step"])


class AnswerTests(unittest.TestCase):
    def test_a_gateway_that_is_stopping_takes_no_change(self):
        self.assertEqual(rejection("the gateway is shutting down"), REFUSED)
        self.assertEqual([rejection("70 is outside 5 to 30"), rejection(None)], [REJECTED, REJECTED])


class OrderTests(unittest.TestCase):
    def follow(self, story, *messages):
        """The kind of the first message that is wrong."""
        story.model()
        device = story.site.devices[0]
        order = MessageOrder(device)
        for change in story.records:
            for part in change.parts:
                order.add(part)
        for values in messages:
            try:
                order.check(Message(100, device.name, "topic", values, True))
            except Finding as finding:
                return finding.kind
        return None

    def test_values_may_collapse_and_repeat(self):
        story = Story(plain("dial", True)).ask("dial/level", argument=1).ask("dial/level", argument=2)
        self.assertIsNone(self.follow(story, {"level": 2}, {"level": 2}))
        self.assertIsNone(self.follow(story, {"level": 1}, {"level": 2}))

    def test_an_older_value_after_a_newer_one_is_found(self):
        story = Story(plain("dial", True)).ask("dial/level", argument=1).ask("dial/level", argument=2)
        self.assertEqual(self.follow(story, {"level": 2}, {"level": 1}), "order")

    def test_a_value_that_was_asked_for_again_is_not_older(self):
        story = Story(plain("dial", True))
        for value in (1, 2, 1):
            story.ask("dial/level", argument=value)
        self.assertIsNone(self.follow(story, {"level": 2}, {"level": 1}))

    def test_a_value_that_nobody_asked_for_is_found(self):
        self.assertEqual(self.follow(Story(plain("dial", True)).ask("dial/level", argument=1), {"level": 3}), "invented")

    def test_a_position_after_the_stop_that_ended_it_is_found(self):
        story = Story(cover("blind", True)).ask("blind/position", argument=80).ask("blind/command", "press", "STOP")
        self.assertIsNone(self.follow(story, {"position": 80}, {"command": "STOP"}))
        self.assertEqual(self.follow(story, {"command": "STOP"}, {"position": 80}), "order")

    def test_a_brightness_after_the_off_that_ended_it_is_found_where_it_implies_on(self):
        for implies, kind in ((True, "order"), (False, None)):
            story = Story(lamp("lamp", "l", implies)).ask("lamp/brightness", argument=40).ask("lamp/power", argument=False)
            self.assertEqual(self.follow(story, {"power": False}, {"brightness": 40}), kind)

    def test_a_merged_message_is_as_new_as_its_newest_change(self):
        story = Story(lamp("lamp", "l", False)).ask("lamp/power", argument=True)
        story.ask("lamp/brightness", argument=40).ask("lamp/brightness", argument=50)
        self.assertIsNone(self.follow(story, {"brightness": 40}, {"power": True, "brightness": 50}))
        self.assertEqual(self.follow(story, {"power": True, "brightness": 50}, {"brightness": 40}), "order")


if __name__ == "__main__":
    unittest.main()
