# Settle
# SPDX-License-Identifier: Apache-2.0
"""As many changes as the control sockets of a fleet accept."""

import random
import re
import select
import socket
import sys
import time

from .fleet import PROBES

CLIENTS = 6  # divides by one, two and three gateways
WINDOW = 1000  # changes of a client without an answer
ACTIVE, ROUNDS = 100, 10  # keys that a client changes by turns, and how often before it goes on
BATCH, PACED_BATCH = 100, 10  # changes in one write, at full speed and at a rate
PROBE_EVERY = 0.02
PROBE_BURST = 4
ACCEPTED = b'"phase":"accepted"'
IDENTIFIER = re.compile(rb'\{"id":"p(\d+)-(\d+)"')


class LoadClient:
    """A connection to a gateway, and the keys that it changes again and again."""

    def __init__(self, gateway, devices, batch):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(gateway.socket)
        self.socket.setblocking(False)
        self.batches, self.next = list(self.make(devices, batch)), 0
        self.open, self.output, self.input = 0, b"", b""

    @staticmethod
    def make(devices, batch):
        """Batches of lines: each key in a burst of several values, as under a finger."""
        lines = [
            f'{{"key":"{device}/level","set":{round_ * 1000 + place}}}\n'
            for start in range(0, len(devices), ACTIVE)
            for round_ in range(ROUNDS)
            for place, device in enumerate(devices[start : start + ACTIVE])
        ]
        for start in range(0, len(lines), batch):
            part = lines[start : start + batch]
            yield "".join(part).encode(), len(part)

    def fill(self, most):
        """Sends until the window is full, or about `most` changes; how many."""
        sent = 0
        while self.open + BATCH <= WINDOW and not self.output and sent < most:
            self.output, count = self.batches[self.next]
            self.next = (self.next + 1) % len(self.batches)
            self.open += count
            sent += count
            self.flush()
        return sent

    def flush(self):
        while self.output:
            try:
                sent = self.socket.send(self.output)
            except BlockingIOError:
                return
            self.output = self.output[sent:]

    def read(self):
        """The whole lines that have arrived."""
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return b""
        if not data:
            sys.exit("bench: the gateway closed the connection")
        data = self.input + data
        end = data.rfind(b"\n") + 1
        self.input = data[end:]
        return data[:end]


class FleetLoad:
    """With `to_owners` each key is changed at the member that drives it, else at any.

    `rate` is in changes a second; without one they are sent as fast as they are accepted.
    """

    def __init__(self, fleet, to_owners=False, rate=None):
        self.fleet, self.rate = fleet, rate
        devices = [f"lamp-{number}" for number in range(1, fleet.devices + 1)]
        random.Random(1).shuffle(devices)
        shares = [[] for _ in range(CLIENTS)]
        for number, device in enumerate(devices):
            place = number % CLIENTS
            if to_owners:
                # Clients are dealt to members in turn.
                of_owner = range(fleet.owner_of(device), CLIENTS, fleet.members)
                place = of_owner[number % len(of_owner)]
            shares[place].append(device)
        self.passed = sum(
            fleet.owner_of(device) != place % fleet.members
            for place, share in enumerate(shares)
            for device in share
        ) / len(devices)
        self.clients = [
            LoadClient(
                fleet.gateways[place % fleet.members], share, PACED_BATCH if rate else BATCH
            )
            for place, share in enumerate(shares)
        ]
        self.accepted = self.refused = 0
        self.probe_at = self.probe_number = 0
        self.last_accepted = {}

    def run(self, seconds):
        """Keeps all windows full for some seconds; how many changes were accepted."""
        before, begin, sent = self.accepted, time.monotonic(), 0
        while (now := time.monotonic()) < begin + seconds:
            if now >= self.probe_at:
                self.probe_at = now + PROBE_EVERY
                self.send_probe()
            for number, client in enumerate(self.clients):
                client.flush()
                room = WINDOW
                if self.rate:  # An equal share of what is due.
                    room = ((now - begin) * self.rate - sent) / (len(self.clients) - number)
                sent += client.fill(room)
            self.receive(0.005)
        return self.accepted - before

    def send_probe(self):
        """Changes a probe a few times, then the next; each by the same client, in order."""
        self.probe_number += 1
        place = self.probe_number // PROBE_BURST
        number, client = PROBES[place % len(PROBES)], self.clients[place % CLIENTS]
        # Beyond the values that have proved that the partition is driven.
        value = 100_000 + self.probe_number
        line = f'{{"key":"probe-{number}/level","id":"p{number}-{value}","set":{value}}}\n'
        client.output += line.encode()
        client.open += 1

    def receive(self, patience):
        readable, _, _ = select.select([client.socket for client in self.clients], [], [], patience)
        for client in self.clients:
            if client.socket not in readable:
                continue
            data = client.read()
            count, accepted = data.count(b"\n"), data.count(ACCEPTED)
            client.open -= count
            self.accepted += accepted
            if accepted < count:
                self.refused += count - accepted
                lines = [line for line in data.split(b"\n") if line and ACCEPTED not in line]
                print(f"bench: not accepted: {lines[0][:300]}", file=sys.stderr)
            if b'"held in memory' in data:
                sys.exit("bench: changes are held in memory only")
            if b'{"id":"p' in data:
                self.remember(data)

    def remember(self, data):
        for line in data.split(b"\n"):
            if (found := IDENTIFIER.match(line)) and ACCEPTED in line:
                number, value = int(found[1]), int(found[2])
                self.last_accepted[number] = max(value, self.last_accepted.get(number, 0))

    def finish(self, patience=60):
        """Awaits the answers, and the last commands of probes; how many are missing."""
        end = time.monotonic() + patience
        while any(client.open for client in self.clients) and time.monotonic() < end:
            for client in self.clients:
                client.flush()
            self.receive(0.05)
        if owed := sum(client.open for client in self.clients):
            sys.exit(f"bench: {owed} answers are owed:\n{self.fleet.log()}")
        while (missing := self.missing()) and time.monotonic() < end:
            time.sleep(0.05)
        for client in self.clients:
            client.socket.close()
        return missing

    def missing(self):
        last = self.fleet.witness.last
        return sum(last.get(number) != value for number, value in self.last_accepted.items())
