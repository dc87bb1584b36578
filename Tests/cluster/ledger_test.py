# Settle
# SPDX-License-Identifier: Apache-2.0
"""Planted violations must be found in a ledger, and what is allowed must not be."""

import unittest

from house import House
from ledger import ACCEPTED, MEMORY_ONLY, REJECTED, Ledger


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
