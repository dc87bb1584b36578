# Settle
# SPDX-License-Identifier: Apache-2.0
"""The load must have its rate, and know the outcome of each change."""

import json
import socket
import tempfile
import threading
import time
import unittest

from house import House
from ledger import Ledger
from load import Load
from processes import wait_until


class FakeGateway(threading.Thread):
    """Accepts every change and delivers it, in place of a gateway and a broker."""

    def __init__(self, path, ledger):
        super().__init__(daemon=True)
        self.ledger, self.server = ledger, socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen()

    def run(self):
        while True:
            client = self.server.accept()[0]
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        for line in client.makefile("rb"):
            change = json.loads(line)
            if "watch" in change:
                continue
            number, value = map(int, change["id"][1:].split("-"))
            if value % 50 == 0:
                client.close()  # Its outcome stays unknown.
                return
            event = {"id": change["id"], "key": change["key"], "phase": "accepted", "value": value, "reason": None, "gateway": "a"}
            if value % 10 == 0:
                event |= {"phase": "rejected", "reason": f"{value} is too much"}
            else:
                self.ledger.delivers(number, value)
            client.sendall(json.dumps(event, separators=(",", ":")).encode() + b"\n")


class LoadTests(unittest.TestCase):
    def test_the_load_has_its_rate_and_every_change_its_outcome(self):
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger()
            house = House(ledger)
            FakeGateway(f"{folder}/a.sock", ledger).start()
            load = Load(ledger, house.load, [f"{folder}/a.sock"], 3000, 1)
            load.start()
            load.probe(house.probes[:3], [f"{folder}/a.sock"])
            wait_until(lambda: all(ledger.first_accepted(probe, ledger.start) for probe in house.probes[:3]), 10, "probes")
            time.sleep(3)
            load.stop()
            wait_until(lambda: load.waiting == 0, 10, "answers")
            load.end()
        self.assertIsNone(load.problem)
        verdict = ledger.check()
        counts = verdict.counts
        self.assertEqual(counts["changes sent"], counts["accepted"] + counts["rejected"] + counts["unanswered"])
        self.assertEqual(counts["unanswered"], sum(ledger.unknown.values()))
        self.assertGreater(counts["accepted"], 6000)
        self.assertEqual(list(ledger.reasons), ["rejected: N is too much"][:len(ledger.reasons)])
        self.assertEqual((verdict.lost, verdict.older, verdict.invented), ([], [], []))
