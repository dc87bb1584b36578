# Settle
# SPDX-License-Identifier: Apache-2.0
"""Gateways with many devices: one alone, or several as a cluster with its engine."""

import contextlib
import json
import os
import socket
import sys
import time

from . import programs
from .broker import Broker
from .engine import Engine
from .gateway import Gateway

sys.path.append(os.path.join(programs.FOLDER, "..", "Tests", "cluster"))
from house import PARTITIONS, partition, probe_devices, template  # noqa: E402
from mqtt import Client  # noqa: E402
from processes import wait_until  # noqa: E402

ALONE, JOURNAL = "without a journal", "with the SQLite journal"
# One in each partition, by partition.
PROBES = probe_devices()
LIMITS = "limits: {devices: 200000, pending: 400000}\n"


class Witness:
    """Subscribes to the commands of the probes, and keeps the last value of each."""

    def __init__(self, port):
        self.last, self.count, self.older = {}, 0, 0
        self.client = Client(port, "witness", self.hear, ["probes/+/level/set"])

    def hear(self, topic, payload):
        number, value = int(topic.split(b"/")[1]), int(float(payload))
        self.older += value < self.last.get(number, 0)
        self.last[number] = value
        self.count += 1


class Fleet:
    """A context manager: one gateway if `kind` is `ALONE` or `JOURNAL`, else so many members."""

    def __init__(self, kind, devices, has_state=False):
        self.kind, self.devices = kind, devices
        self.attempts = 0
        self.is_cluster = kind not in (ALONE, JOURNAL)
        self.members = kind if self.is_cluster else 1
        self.lines = [
            template("lamp", f"1..{devices}", "lamps", has_state, ("level",)),
            template("probe", ", ".join(map(str, sorted(PROBES))), "probes", False, ("level",)),
        ]

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with self.stack:
            self.broker = self.stack.enter_context(Broker())
            self.engine = self.stack.enter_context(Engine()) if self.is_cluster else None
            self.idle_broker = programs.resident_of(self.broker.process)[0]
            self.witness = Witness(self.broker.port)
            self.stack.callback(self.witness.client.close)
            self.start()
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *rest):
        self.stack.close()

    def start(self):
        """Starts all gateways at once, and measures how long the partitions take."""
        begin = time.monotonic()
        self.gateways = [
            self.stack.enter_context(
                Gateway(self.broker.port, self.lines, LIMITS + self.settings(number), waits=False)
            )
            for number in range(self.members)
        ]
        for gateway in self.gateways:
            gateway.await_ready()
        self.probe()
        self.seconds_to_driven = time.monotonic() - begin
        wait_until(lambda: self.is_balanced, 120, "a balanced cluster")
        self.seconds_to_balanced = time.monotonic() - begin
        self.owners = self.owner_of_each()

    def restart(self):
        """Ends all gateways in order, and starts them again."""
        for gateway in self.gateways:
            gateway.terminate()
        self.start()

    def settings(self, number):
        if self.kind == ALONE:
            return ""
        if self.kind == JOURNAL:
            return "journal: {path: journal.db}\n"
        return (
            f"cluster: {{name: bench, member: m{number}, nats: [{self.engine.urls}],"
            f" partitions: {PARTITIONS}, replicas: {len(self.engine.ports)}}}\n"
        )

    def probe(self):
        """Changes each probe until its command arrives: then its partition is driven."""
        self.witness.last.clear()
        end = time.monotonic() + 120
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.gateways[0].socket)
            replies = client.makefile("rb")
            while missing := [number for number in PROBES if number not in self.witness.last]:
                if time.monotonic() > end:
                    sys.exit(f"bench: {len(missing)} partitions are not driven:\n{self.log()}")
                self.attempts += 1
                lines = [
                    f'{{"key":"probe-{number}/level","set":{self.attempts},"now":true}}\n'
                    for number in missing
                ]
                client.sendall("".join(lines).encode())
                for _ in lines:
                    replies.readline()
                time.sleep(0.02)

    def status(self, gateway):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(gateway.socket)
            client.sendall(b'{"status":true}\n')
            return json.loads(client.makefile("rb").readline())["status"]

    def owner_of_each(self, gateway=None):
        """The place in `gateways` of each partition's owner; `None` without one."""
        if not self.is_cluster:
            return [0] * PARTITIONS
        rows = self.status(gateway or self.gateways[0])["partitions"]
        return [row["owner"] and int(row["owner"][1:]) for row in rows]

    @property
    def is_balanced(self):
        """Whether all members name the same owners, each of about as many partitions."""
        views = [self.owner_of_each(gateway) for gateway in self.gateways]
        counts = [views[0].count(number) for number in range(self.members)]
        return (
            views.count(views[0]) == len(views)
            and sum(counts) == PARTITIONS
            and max(counts) - min(counts) <= 1
        )

    def owner_of(self, device):
        return self.owners[partition(device)]

    def counter(self, name):
        return sum(self.status(gateway)["counters"][name] for gateway in self.gateways)

    def groups(self):
        """The processes of gateways, engine and broker."""
        return {
            "gateways": [gateway.process for gateway in self.gateways],
            "engine": self.engine.processes if self.engine else [],
            "broker": [self.broker.process],
        }

    def cpu(self):
        """CPU nanoseconds so far."""
        return {name: sum(map(programs.cpu_of, group)) for name, group in self.groups().items()}

    def resident(self):
        """Resident bytes."""
        return {
            name: sum(programs.resident_of(process)[0] for process in group)
            for name, group in self.groups().items()
        }

    def log(self):
        return "".join(gateway.text()[-3000:] for gateway in self.gateways)
