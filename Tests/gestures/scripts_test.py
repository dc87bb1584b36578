# Settle
# SPDX-License-Identifier: Apache-2.0
"""Gestures depend on the seed and the site alone."""

import random
import unittest

from house import KINDS, sites
from plants import PLANTS
from scripts import GESTURES, Hand
from selftest import SITES


def people(seed, without):
    return [Hand(site, random.Random(f"{seed}/{site.name}"), without) for site in sites(without)]


def draw(seed, without, count=300):
    return {hand.site.name: [hand.gesture() for _ in range(count)] for hand in people(seed, without)}


class ScriptTests(unittest.TestCase):
    def test_a_seed_always_makes_the_same_gestures(self):
        self.assertEqual(draw(7, set()), draw(7, set()))
        self.assertNotEqual(draw(7, set()), draw(8, set()))

    def test_every_surface_and_every_verb_is_used(self):
        gestures = [gesture for found in draw(7, set()).values() for gesture in found]
        self.assertEqual({surface for surface, _ in gestures}, {"socket", "mqtt", "http", "batch"})
        self.assertEqual({act.verb for _, acts in gestures for act in acts}, {
            "set", "step", "toggle", "press", "many", "scene", "flush", "cancel", "hand", "pause", "quiet"})

    def test_what_is_left_out_does_not_happen(self):
        found = draw(7, set(KINDS))
        self.assertFalse({"hall", "attic", "switch"} & found.keys())
        acts = [act for gestures in found.values() for _, acts in gestures for act in acts]
        self.assertFalse([act for act in acts if act.target.startswith("blind") and act.verb == "press"])

    def test_every_gesture_is_made_but_those_that_are_left_out(self):
        for without in (set(), set(KINDS)):
            hands = people(7, without)
            for hand in hands:
                for _ in range(300):
                    hand.gesture()
            expected = {name for name, kind in GESTURES.items() if kind not in without}
            self.assertEqual({name for hand in hands for name in hand.made}, expected)

    def test_every_planted_mistake_has_a_site(self):
        self.assertEqual(SITES.keys(), PLANTS.keys())


if __name__ == "__main__":
    unittest.main()
