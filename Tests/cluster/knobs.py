# Settle
# SPDX-License-Identifier: Apache-2.0
"""Changes that come by MQTT, with quality of service 1."""

import random
import threading
import time

from ledger import ACCEPTED, DELIVERED_WITHIN
from mqtt import Client


class KnobLoad(threading.Thread):
    """Publishes to command topics, some changes a second; the broker's acknowledgement is recorded."""

    def __init__(self, ledger, numbers, port, rate, seed):
        super().__init__(daemon=True)
        self.ledger, self.numbers, self.rate, self.random = ledger, numbers, rate, random.Random(seed)
        self.waiting, self.ended, self.problem = {}, threading.Event(), None
        self.lock, self.resting, self.rest_until = threading.Lock(), set(), 0
        self.client = Client(port, "knobs", acknowledged=self.acknowledged)

    def run(self):
        try:
            while not self.ended.wait(1 / self.rate):
                number = self.random.choice(self.numbers)
                if number in self.resting and time.monotonic() < self.rest_until:
                    continue
                with self.lock:  # The acknowledgement may come before the identifier is known.
                    value = self.ledger.sends(number)
                    topic = f"settle/{self.ledger.keys[number].name}/set"
                    self.waiting[self.client.publish(topic, b"%d" % value)] = number, value
        except OSError as problem:
            self.problem = problem

    def rest(self, share):
        """Leaves some keys alone for a while, unless some are left alone already."""
        if time.monotonic() < self.rest_until:
            return
        self.resting = set(random.sample(self.numbers, int(len(self.numbers) * share)))
        self.rest_until = time.monotonic() + DELIVERED_WITHIN + 1

    def acknowledged(self, identifier):
        with self.lock:
            number, value = self.waiting.pop(identifier)
        # Not by `answer`: the figures of accepted changes are those of the control sockets.
        key = self.ledger.keys[number]
        key.outcome[value], key.answered[value] = ACCEPTED, self.ledger.clock()

    def finish(self):
        self.ended.set()
        self.join()
        self.client.flush()
        self.problem = self.problem or self.client.problem
        self.client.close()
