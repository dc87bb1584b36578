# Settle
# SPDX-License-Identifier: Apache-2.0
"""What was asked of the gateways, what they promised, and what the devices received.

The values of a key are 1, 2, 3 and so on, one for each change, so that a value names its change.
"""

import threading
import time
from array import array
from bisect import bisect_right
from collections import Counter

# What is known of a change.
WAITING, ACCEPTED, MEMORY_ONLY, REJECTED = range(4)
# A change without an answer may reach its owner this long after it was sent, and no later.
UNKNOWN_FOR = 5.0
# An accepted value that nothing replaces must be with its device in this time, whatever fails. At a
# fault some keys get no further changes for a little longer, so that none hides a value that was lost.
DELIVERED_WITHIN = 25.0


class Key:
    """A key of the test. `kind` is `socket`, `probe` or `mqtt`: where its changes are sent to."""

    __slots__ = ("name", "kind", "sent", "answered", "outcome", "gateway", "delivered", "delivered_at")

    def __init__(self, name, kind):
        self.name, self.kind = name, kind
        # By value; the value 0 is never sent.
        self.sent, self.answered = array("d", [0]), array("d", [0])
        self.outcome, self.gateway = bytearray(1), bytearray(1)
        # In the order in which the device received them.
        self.delivered, self.delivered_at = array("Q"), array("d")


class Ledger:
    BUCKET = 0.01  # seconds

    def __init__(self, clock=time.monotonic):
        self.clock, self.start = clock, clock()
        self.keys, self.gateways = [], [None]
        self.reasons, self.two_gateways, self.strangers = Counter(), [], []
        self.late, self.unknown = 0, Counter()
        # When answers promised that a value is kept; and how long accepted ones took, in milliseconds.
        self.accepted_in, self.latencies = Counter(), Counter()
        # Changes that were sent in each second.
        self.sent_in = Counter()
        self.lock = threading.Lock()

    def add(self, name, kind):
        self.keys.append(Key(name, kind))
        return len(self.keys) - 1

    def sends(self, number):
        """Records a new change of a key; its value."""
        key = self.keys[number]
        now = self.clock()
        key.sent.append(now)
        self.sent_in[int(now - self.start)] += 1
        key.answered.append(0)
        key.outcome.append(WAITING)
        key.gateway.append(0)
        return len(key.sent) - 1

    def answer(self, number, value, outcome, gateway=None, reason=None):
        key, now = self.keys[number], self.clock()
        if outcome in (ACCEPTED, MEMORY_ONLY):
            self.sees_accepted(number, value, gateway)
            if outcome == ACCEPTED:
                self.accepted_in[int((now - self.start) / self.BUCKET)] += 1
            self.latencies[int((now - key.sent[value]) * 1000)] += 1
        if reason:
            self.reasons[reason] += 1
        key.outcome[value], key.answered[value] = outcome, now

    def sees_accepted(self, number, value, gateway):
        """Records which gateway accepted a change, as its answer or a watched event says."""
        if not gateway:
            return
        with self.lock:
            if gateway not in self.gateways:
                self.gateways.append(gateway)
            key, code = self.keys[number], self.gateways.index(gateway)
            if key.gateway[value] not in (0, code):
                first = self.gateways[key.gateway[value]]
                self.two_gateways.append(f"{key.name}={value}: accepted by {first} and by {gateway}")
            key.gateway[value] = code

    def delivers(self, number, value):
        key = self.keys[number]
        key.delivered.append(value)
        key.delivered_at.append(self.clock())

    def first_accepted(self, number, since):
        """When the first change of a key that was sent at or after a moment was accepted for certain."""
        key, first = self.keys[number], None
        for value in range(len(key.sent) - 1, 0, -1):
            if key.sent[value] < since:
                break
            if key.outcome[value] == ACCEPTED and (first is None or key.answered[value] < first):
                first = key.answered[value]
        return first

    def longest_pause(self, since, until):
        """The longest time between two accepted answers that falls into a span."""
        first, last = int((since - self.start) / self.BUCKET), int((until - self.start) / self.BUCKET)
        longest = current = 0
        for bucket in range(first, last + 1):
            current = 0 if self.accepted_in.get(bucket) else current + 1
            longest = max(longest, current)
        return longest * self.BUCKET

    def check(self):
        """The verdict: counts, and of each violation a line."""
        result = Verdict(self)
        for key in self.keys:
            result.add(key)
        return result


class Verdict:
    def __init__(self, ledger):
        self.counts, self.start, self.gateways = Counter(), ledger.start, ledger.gateways
        self.lost, self.late, self.older, self.uncommitted = [], [], [], []
        self.reordered, self.invented = [], list(ledger.strangers)
        self.two_gateways = ledger.two_gateways

    def add(self, key):
        counts = self.counts
        if key.kind == "mqtt":
            counts["mqtt changes sent"] += len(key.sent) - 1
            counts["mqtt changes acknowledged"] += key.outcome.count(ACCEPTED)
        else:
            counts["changes sent"] += len(key.sent) - 1
            counts["accepted"] += key.outcome.count(ACCEPTED)
            counts["accepted in memory only"] += key.outcome.count(MEMORY_ONLY)
            counts["rejected"] += key.outcome.count(REJECTED)
            # The value 0 was not sent.
            counts["unanswered"] += key.outcome.count(WAITING) - 1
        counts["delivered"] += len(key.delivered)
        newest = max(key.delivered, default=0)
        promised = key.outcome.rfind(ACCEPTED)
        if promised > newest and not self.is_reordered(key, promised, after=key.answered[promised]):
            lost = self.uncommitted if key.kind == "mqtt" else self.lost
            lost.append(f"{key.name}={promised}, newest delivered: {newest}; changes: {self.history(key)}")
        self.check_delay(key)
        self.check_order(key)

    def check_delay(self, key):
        newest = array("Q", [0])
        for value in key.delivered:
            newest.append(max(newest[-1], value))
        for value in range(1, len(key.sent) - 1):
            answered, end = key.answered[value], key.sent[value + 1]
            if end - answered < DELIVERED_WITHIN or key.outcome[value] != ACCEPTED:
                continue
            self.counts["accepted, then left alone"] += 1
            if newest[bisect_right(key.delivered_at, end)] < value and not self.is_reordered(key, value, after=answered):
                late = self.uncommitted if key.kind == "mqtt" else self.late
                late.append(f"{key.name}={value} accepted at {self.at(answered)}, not delivered until {self.at(end)}")

    def check_order(self, key):
        newest, seen = 0, set()
        for place, value in enumerate(key.delivered):
            if not 0 < value < len(key.sent):
                self.invented.append(f"{key.name}={value} was never sent")
                continue
            if value in seen:
                self.counts["duplicates"] += 1
            elif key.outcome[value] == REJECTED:
                self.counts["delivered although rejected"] += 1
            seen.add(value)
            if value < newest:
                if self.is_later(key, newest, than=value):
                    self.older.append(
                        f"{key.name}={value} after {newest} at {self.at(key.delivered_at[place])}"
                        f" (sent at {self.at(key.sent[value])} and {self.at(key.sent[newest])})"
                    )
                else:
                    self.counts["older after newer, the older one unanswered"] += 1
            newest = max(newest, value)

    def history(self, key):
        """The last changes of a key: value, when it was sent and answered, how, and by which gateway."""
        words = ("unanswered", "accepted", "in memory only", "rejected")
        return ", ".join(
            f"{value} {self.at(key.sent[value])}-{self.at(key.answered[value]) if key.outcome[value] else ''}"
            f" {words[key.outcome[value]]} {self.gateways[key.gateway[value]] or ''}".strip()
            for value in range(max(1, len(key.sent) - 6), len(key.sent))
        )

    def is_reordered(self, key, value, after):
        """Whether a value was replaced by an earlier one that may have arrived later, as it was unanswered."""
        for earlier in key.delivered[bisect_right(key.delivered_at, after):]:
            if 0 < earlier < value and not self.is_later(key, value, than=earlier):
                self.reordered.append(f"{key.name}={value} replaced by {earlier}, sent at {self.at(key.sent[earlier])}")
                return True
        return False

    @staticmethod
    def is_later(key, newer, than):
        """Whether a change was sent when an earlier one was accepted, or could no longer arrive."""
        answered = key.outcome[than] in (ACCEPTED, MEMORY_ONLY) and key.answered[than] <= key.sent[newer]
        return answered or key.sent[than] + UNKNOWN_FOR <= key.sent[newer]

    def at(self, moment):
        return f"{moment - self.start:.3f}"
