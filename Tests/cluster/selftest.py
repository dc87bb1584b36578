# Settle
# SPDX-License-Identifier: Apache-2.0
"""Checks the checker: planted violations must be found, and what is allowed must not be."""

import json
import os
import socket
import tempfile
import threading
import time
import unittest

from engine import LOG, RECORDS, Engine
from frames import Frame, LogCheck, LogReader
from house import House, partition, probe_devices
from ledger import ACCEPTED, MEMORY_ONLY, REJECTED, Ledger
from load import Load
from processes import STORE, Process, Stage, wait_until
from proxy import Links


class Case:
    """One key, whose changes and deliveries a test writes down with their moments."""

    def __init__(self, kind="socket"):
        self.now = 100.0
        self.ledger = Ledger(clock=lambda: self.now)
        self.key = self.ledger.add("lamp-1/level", kind)

    def at(self, moment):
        self.now = 100.0 + moment
        return self

    def send(self):
        self.ledger.sends(self.key)
        return self

    def answer(self, value, outcome=ACCEPTED, gateway=None):
        self.ledger.answer(self.key, value, outcome, gateway)
        return self

    def deliver(self, *values):
        for value in values:
            self.ledger.delivers(self.key, value)
        return self

    def accept(self, *values):
        for value in values:
            self.send().answer(value)
        return self


class LedgerTests(unittest.TestCase):
    def verdict(self, case, **expected):
        verdict = case.ledger.check()
        found = {name: len(getattr(verdict, name)) for name in ("lost", "late", "older", "invented", "uncommitted", "two_gateways")}
        self.assertEqual({name: count for name, count in found.items() if count}, expected)
        return verdict.counts

    def test_a_collapsed_value_is_not_lost(self):
        self.verdict(Case().accept(1, 2, 3).deliver(3))

    def test_a_lost_value_is_found(self):
        self.verdict(Case().accept(1, 2, 3).deliver(1, 2), lost=1)

    def test_a_value_that_never_left_is_found(self):
        self.verdict(Case().accept(1), lost=1)

    def test_a_loss_that_a_later_change_hides_is_found(self):
        self.verdict(Case().at(0).accept(1).at(30).accept(2).at(31).deliver(2), late=1)
        self.verdict(Case().at(0).accept(1).at(29).deliver(1).at(30).accept(2).at(31).deliver(2))
        self.verdict(Case().at(0).accept(1).at(10).accept(2).at(31).deliver(2))
        self.verdict(Case("mqtt").at(0).accept(1).at(30).accept(2).at(31).deliver(2), uncommitted=1)

    def test_an_unanswered_older_value_may_replace_an_accepted_one_for_five_seconds(self):
        self.verdict(Case().at(0).send().at(1).send().at(2).answer(2).at(3).answer(1).at(4).deliver(1))
        self.verdict(Case().at(0).send().at(6).send().at(7).answer(2).at(8).answer(1).at(9).deliver(1), lost=1)
        self.verdict(Case().at(0).send().at(1).send().at(2).answer(1).deliver(1).at(3).answer(2), lost=1)

    def test_an_unanswered_newer_value_may_replace_an_accepted_one(self):
        self.verdict(Case().accept(1).send().deliver(2))

    def test_a_value_in_memory_only_may_be_lost(self):
        counts = self.verdict(Case().accept(1).deliver(1).send().answer(2, MEMORY_ONLY))
        self.assertEqual(counts["accepted in memory only"], 1)

    def test_an_accepted_value_before_one_in_memory_only_must_not_be_lost(self):
        self.verdict(Case().accept(1).send().answer(2, MEMORY_ONLY), lost=1)

    def test_an_older_value_after_a_newer_one_is_found(self):
        self.verdict(Case().at(0).accept(1).at(1).accept(2).deliver(2, 1, 2), older=1)

    def test_an_older_value_in_memory_only_after_a_newer_one_is_found(self):
        self.verdict(Case().at(0).send().answer(1, MEMORY_ONLY).at(1).accept(2).deliver(2, 1), older=1)

    def test_an_older_value_after_a_newer_one_is_found_although_it_was_delivered_before(self):
        self.verdict(Case().at(0).accept(1).at(1).accept(2).deliver(1, 2, 1), older=1)

    def test_an_unanswered_older_value_may_come_after_a_newer_one_for_five_seconds(self):
        counts = self.verdict(Case().at(0).send().at(4.9).accept(2).deliver(2, 1))
        self.assertEqual(counts["older after newer, the older one unanswered"], 1)

    def test_an_unanswered_older_value_is_found_after_five_seconds(self):
        self.verdict(Case().at(0).send().at(5).accept(2).deliver(2, 1), older=1)

    def test_an_answer_that_comes_after_the_newer_change_was_sent_orders_nothing(self):
        self.verdict(Case().at(0).send().at(1).send().at(2).answer(1).answer(2).deliver(2, 1))

    def test_duplicates_are_counted(self):
        self.assertEqual(self.verdict(Case().accept(1).deliver(1, 1, 1))["duplicates"], 2)

    def test_a_value_that_nobody_sent_is_found(self):
        self.verdict(Case().accept(1).deliver(1, 7), invented=1)

    def test_a_rejected_value_that_left_is_counted(self):
        counts = self.verdict(Case().send().answer(1, REJECTED).deliver(1))
        self.assertEqual(counts["delivered although rejected"], 1)

    def test_two_gateways_that_accept_one_change_are_found(self):
        case = Case().send().answer(1, gateway="a").deliver(1)
        case.ledger.sees_accepted(case.key, 1, "a")
        self.verdict(case)
        case.ledger.sees_accepted(case.key, 1, "b")
        self.verdict(case, two_gateways=1)

    def test_what_the_broker_acknowledged_is_counted_apart(self):
        self.verdict(Case("mqtt").accept(1, 2).deliver(1), uncommitted=1)

    def test_a_message_on_an_unknown_topic_is_found(self):
        ledger = Ledger()
        self.assertIsNone(House(ledger).hear(b"lamps/0/level/set", b"1"))
        self.assertEqual(len(ledger.check().invented), 1)

    def test_a_device_with_a_state_topic_reports_what_it_received(self):
        report = House(Ledger()).hear(b"blinds/501/tint/set", b"12")
        self.assertEqual(report, b"\x30\x13" + b"\0\x0fblinds/501/tint" + b"12")

    def test_the_longest_pause_is_that_between_two_answers(self):
        case = Case()
        for moment in (0, 1, 1.5, 4, 4.2, 9):
            case.at(moment).accept(len(case.ledger.keys[case.key].sent))
        self.assertAlmostEqual(case.ledger.longest_pause(100.0, 104.5), 2.5, delta=0.02)

    def test_takeover_ends_with_the_first_accepted_change_that_was_sent_since(self):
        case = Case().at(0).send().at(1).send().at(2).send().at(3).answer(1).at(4).answer(3).at(5).answer(2)
        self.assertEqual(case.ledger.first_accepted(case.key, 100.5), 104.0)
        self.assertIsNone(case.ledger.first_accepted(case.key, 102.5))


def frame(kind, epoch, *rest):
    result = bytes([1, kind])
    while epoch >= 0x80:
        result += bytes([epoch & 0x7F | 0x80])
        epoch >>= 7
    return result + bytes([epoch]) + b"".join(rest) + b"\0\0"


def claim(epoch, member):
    return frame(1, epoch, bytes([len(member)]), member.encode())


class FrameTests(unittest.TestCase):
    def test_frames_are_read(self):
        self.assertEqual((Frame(claim(300, "a")).epoch, Frame(claim(300, "a")).member), (300, "a"))
        self.assertEqual((Frame(frame(2, 1 << 40)).kind, Frame(frame(2, 1 << 40)).epoch), ("changes", 1 << 40))

    def test_an_owner_that_writes_after_the_next_one_is_found(self):
        check = LogCheck()
        for data in (claim(1, "a"), frame(2, 1), claim(2, "b"), frame(2, 2), b"x"):
            check.append(1, "p", data)
        check.append(1, "q", claim(1, "b"))
        self.assertEqual((check.violations, check.unreadable), ([], 1))
        check.append(1, "p", frame(2, 1))
        self.assertEqual(len(check.violations), 1)

    def test_two_owners_of_one_epoch_are_found(self):
        check = LogCheck()
        check.append(1, "p", claim(1, "a"))
        check.append(2, "p", claim(1, "b"))
        self.assertEqual(len(check.violations), 1)

    def test_probes_cover_each_partition(self):
        self.assertEqual([partition(f"probe-{n}") for n in probe_devices()], list(range(64)))
        self.assertEqual(partition("a", 1 << 64), 0xAF63DC4C8601EC8C)  # of the reference


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


class LinkTests(unittest.TestCase):
    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.server.close)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.links = Links({"x": (self.port, self.server.getsockname()[1])}, Process.popen)
        self.addCleanup(self.links.process.wait)
        self.addCleanup(self.links.process.kill)

    def pair(self):
        client = socket.create_connection(("127.0.0.1", self.port), timeout=5)
        server = self.server.accept()[0]
        for end in (client, server):
            end.settimeout(0.5)
            self.addCleanup(end.close)
        return client, server

    def test_bytes_pass_in_both_directions(self):
        client, server = self.pair()
        client.sendall(b"a" * 300_000)
        received = 0
        while received < 300_000:
            received += len(server.recv(65536))
        server.sendall(b"b")
        self.assertEqual(client.recv(9), b"b")
        client.close()
        self.assertEqual(server.recv(9), b"")

    def test_a_cut_link_resets_connections_and_new_ones(self):
        client, server = self.pair()
        self.links.set("cut", "x")
        for end in (client, server, socket.create_connection(("127.0.0.1", self.port), timeout=5)):
            with self.assertRaises(ConnectionResetError), end:
                if not end.recv(9):
                    raise ConnectionResetError
        self.links.heal()
        self.pair()

    def test_a_silent_link_keeps_the_connection_until_it_is_healed(self):
        client, server = self.pair()
        self.links.set("silence", "x")
        client.sendall(b"lost")
        for end in (client, server):
            with self.assertRaises(TimeoutError):
                end.recv(9)
        self.links.heal()
        with self.assertRaises(ConnectionResetError):
            if not client.recv(9):
                raise ConnectionResetError
        client, server = self.pair()
        client.sendall(b"a")
        self.assertEqual(server.recv(9), b"a")

    def test_a_deaf_client_is_heard(self):
        client, server = self.pair()
        self.links.set("deafen", "x")
        client.sendall(b"a")
        self.assertEqual(server.recv(9), b"a")
        server.sendall(b"lost")
        with self.assertRaises(TimeoutError):
            client.recv(9)


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


def main():
    suite = unittest.defaultTestLoader.loadTestsFromName(__name__)
    return 0 if unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful() else 1
