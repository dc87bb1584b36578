# Settle
# SPDX-License-Identifier: Apache-2.0
"""Clients on the control sockets of all gateways, and what they send."""

import heapq
import random
import selectors
import socket
import threading
import time
from collections import Counter, deque

from answers import ACCEPTED_EVENT, GATEWAY, identify, outcome
from client import SocketClient
from ledger import DELIVERED_WITHIN, UNKNOWN_FOR, WAITING

PATIENCE = 15.0  # for an answer


class Load(threading.Thread):
    """Sends changes at a rate, each key's next one when the one before was answered.

    Keys change in bursts, as under a finger: up to `burst` changes, `spacing` seconds apart.
    """

    def __init__(self, ledger, keys, sockets, rate, seed, clients=2, burst=20, spacing=0.1, watch=True):
        super().__init__(daemon=True)
        self.ledger, self.rate, self.random = ledger, rate, random.Random(seed)
        self.clients = [SocketClient(path) for path in sockets for _ in range(clients)]
        self.watchers = [SocketClient(path) for path in sockets] if watch else []
        self.burst, self.spacing = burst, spacing
        self.prefixes = {n: f'{{"key":"{ledger.keys[n].name}","id":"k{n}-'.encode() for n in range(len(ledger.keys))}
        keys = list(keys)
        self.random.shuffle(keys)
        # Keys without a burst; keys in one, by when the next change is due; changes left in it.
        self.idle, self.due, self.left = deque(keys), [], dict.fromkeys(keys, 0)
        self.probes, self.resting, self.lock = {}, {}, threading.Lock()
        self.is_stopped, self.is_ended, self.problem, self.counts = False, False, None, Counter()

    def run(self):
        self.selector = selectors.DefaultSelector()
        try:
            self.last = time.monotonic()
            self.credit = 0.0
            while not self.is_ended:
                now = time.monotonic()
                self.connect(now)
                self.expire(now)
                if not self.is_stopped:
                    self.send_changes(now)
                self.send_probes(now)
                for client in self.clients:
                    self.flush(client)
                end = now + 0.01
                while (left := end - time.monotonic()) > 0:
                    for found, _ in self.selector.select(left):
                        found.data[1](found.data[0])
        except Exception as problem:
            self.problem = problem
            raise

    def stop(self):
        """Ends sending but probes; answers are still awaited."""
        self.is_stopped = True

    def end(self):
        self.is_stopped = self.is_ended = True
        self.join()
        for client in self.clients + self.watchers:
            if client.socket:
                client.socket.close()

    @property
    def waiting(self):
        return sum(len(client.waiting) for client in self.clients)

    # Sending.

    def send_changes(self, now):
        # After a pause it catches up on half a second, no more.
        self.credit = min(self.credit + (now - self.last) * self.rate, self.rate / 2)
        self.last = now
        usable = [client for client in self.clients if client.is_usable(now)]
        while self.credit >= 1 and usable:
            if self.due and self.due[0][0] <= now:
                number = heapq.heappop(self.due)[1]
            elif self.idle:
                number = self.idle.popleft()
                if self.left[number] <= 0:
                    self.left[number] = self.random.randint(1, self.burst)
            else:
                self.counts["no key was free"] += 1
                return
            if self.resting and (rested := self.resting.pop(number, 0)) > now:
                self.resting[number] = rested
                heapq.heappush(self.due, (rested, number))
                continue
            self.credit -= 1
            self.left[number] -= 1
            self.send(usable[int(self.random.random() * len(usable))], number, now)

    def send(self, client, number, now):
        value = self.ledger.sends(number)
        client.lines.append(b'%b%d","set":%d}\n' % (self.prefixes[number], value, value))
        client.waiting[number, value] = now

    def flush(self, client):
        if client.lines:
            client.output += b"".join(client.lines)
            client.lines = []
        if client.output and client.socket:
            try:
                sent = client.socket.send(client.output)
                client.output = client.output[sent:]
            except BlockingIOError:
                pass
            except OSError:
                self.lose(client)

    def proceed(self, number, moment):
        """Lets a key go on at a moment."""
        if number not in self.left:
            return
        if self.left[number] > 0 or moment > time.monotonic() + 1:
            heapq.heappush(self.due, (moment, number))
        else:
            self.idle.append(number)

    def rest(self, share):
        """Leaves some keys alone for a while."""
        until = time.monotonic() + DELIVERED_WITHIN + 1
        for number in random.sample(list(self.left), int(len(self.left) * share)):
            self.resting[number] = until

    # Probes.

    def probe(self, numbers, paths, every=0.25):
        """Changes keys again and again, until one change is accepted, each by the gateway of one of the paths."""
        now = time.monotonic()
        with self.lock:
            for number in numbers:
                clients = [client for client in self.clients if client.path in paths]
                self.probes[number] = [now, every, self.random.choice(clients), now]

    def end_probes(self):
        with self.lock:
            self.probes = {}

    def send_probes(self, now):
        if not self.probes:
            return
        with self.lock:
            for number, probe in list(self.probes.items()):
                if probe[0] > now or not probe[2].socket:
                    continue
                if self.ledger.first_accepted(number, probe[3]):
                    del self.probes[number]
                    continue
                probe[0] = now + probe[1]
                self.send(probe[2], number, now)

    # Connections.

    def connect(self, now):
        for client in self.clients + self.watchers:
            if client.socket or now < client.retry_at:
                continue
            client.retry_at = now + 0.25
            connection = socket.socket(socket.AF_UNIX)
            connection.setblocking(False)
            try:
                connection.connect(client.path)
            except OSError:
                connection.close()
                continue
            client.reset()
            client.socket, client.heard_at = connection, now
            is_watcher = client in self.watchers
            if is_watcher:
                client.output = b'{"watch":"*","id":"w"}\n'
                self.flush(client)
            receive = self.receive_events if is_watcher else self.receive
            self.selector.register(connection, selectors.EVENT_READ, (client, receive))

    def lose(self, client):
        if not client.socket:
            return
        self.selector.unregister(client.socket)
        client.socket.close()
        client.socket = None
        now = time.monotonic()
        for number, value in client.waiting:
            self.forget(number, value, now, "connection lost")
        client.reset()

    def expire(self, now):
        for client in self.clients:
            while client.waiting:
                change, sent = next(iter(client.waiting.items()))
                if sent + PATIENCE > now:
                    break
                del client.waiting[change]
                self.forget(*change, now, "no answer in 15 s")

    def forget(self, number, value, now, why):
        """The outcome of a change is unknown: it may still be on its way."""
        self.ledger.unknown[why] += 1
        self.proceed(number, now + UNKNOWN_FOR)

    # Receiving.

    def read(self, client):
        """The whole lines that have arrived; `None` when the connection is lost."""
        try:
            data = client.socket.recv(1 << 18)
        except BlockingIOError:
            return ()
        except OSError:
            data = b""
        if not data:
            return self.lose(client)
        client.heard_at = time.monotonic()
        *lines, client.input = (client.input + data).split(b"\n")
        return lines

    def receive(self, client):
        for line in self.read(client) or ():
            if not line:
                continue
            number, value = identify(line)
            if number is None:
                self.counts["answers to nothing"] += 1
                continue
            result, gateway, reason = outcome(line)
            sent = client.waiting.pop((number, value), None)
            if result == WAITING:
                self.forget(number, value, client.heard_at, reason)
                continue
            if sent is None:
                self.ledger.late += 1
            self.ledger.answer(number, value, result, gateway, reason)
            if sent is not None:
                self.proceed(number, max(sent + self.spacing, client.heard_at))

    def receive_events(self, client):
        for line in self.read(client) or ():
            found = ACCEPTED_EVENT.search(line)
            if found:
                gateway = GATEWAY.search(line)
                number, value = int(found[1]), int(found[2])
                if gateway and number < len(self.ledger.keys) and value < len(self.ledger.keys[number].sent):
                    self.counts["accepted events watched"] += 1
                    self.ledger.sees_accepted(number, value, gateway[1].decode())
