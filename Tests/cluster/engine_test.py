# Settle
# SPDX-License-Identifier: Apache-2.0
"""Faults of three real servers must be seen as what they are."""

import os
import unittest

from engine import LOG, RECORDS, Engine
from frames import LogReader
from frames_test import claim, frame
from processes import STORE, Stage, wait_until


class EngineTests(unittest.TestCase):
    """Three real servers, and a log that the test writes."""

    def test_the_engine_is_read_through_a_kill_a_cut_and_a_full_store(self):
        with Stage(os.devnull) as stage:
            engine = Engine(stage.client_ports.values())
            engine.create(LOG, "settle.test.log.*")
            engine.create(RECORDS, "settle.test.records.>")
            reader = LogReader(stage.client_ports.values(), LOG)
            engine.client.store("settle.test.log.7", claim(1, "a"))
            engine.client.store("settle.test.records.owner.7", b'{"member":"a","epoch":1}')
            self.assertEqual(engine.owners()[6:8], [(None, 0), ("a", 1)])
            reader.read()
            wait_until(engine.is_whole, 30, "a whole engine")

            leader = engine.leader()
            stage.engines[leader].kill()
            wait_until(lambda: engine.leader() not in (None, leader), 20, "another leader")
            self.assertFalse(engine.is_whole())
            wait_until(lambda: self.stores(engine, claim(2, "b")), 20, "a stored claim")
            stage.engines[leader].start()
            wait_until(engine.is_whole, 30, "a whole engine")

            links = [link for link in stage.links.names if set(link.split("-")) <= set(stage.engines) and "n2" in link]
            self.assertEqual(len(links), 4)
            stage.links.set("cut", *links)
            wait_until(lambda: not engine.is_whole(), 30, "an engine that is cut off")
            stage.links.heal()
            wait_until(engine.is_whole, 60, "a whole engine")

            self.assertGreater(engine.fill(1 << 19, 4 * STORE), STORE // 2)
            self.assertFalse(self.stores(engine, claim(3, "c")))
            self.assertTrue(engine.empty())
            wait_until(lambda: self.stores(engine, claim(3, "c")), 30, "room")
            engine.client.store("settle.test.log.7", frame(2, 2))
            self.assertTrue(reader.finish())
            self.assertGreaterEqual(reader.check.frames, 4)
            self.assertEqual(len(reader.check.violations), 1)

    @staticmethod
    def stores(engine, data):
        try:
            return bool(engine.client.store("settle.test.log.7", data))
        except Exception:
            return False
