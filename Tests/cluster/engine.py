# Settle
# SPDX-License-Identifier: Apache-2.0
"""What the engine says of its streams and of the cluster's records; and how its store is filled."""

import json
import time

from house import PARTITIONS
from nats import Client, NoAnswer, Refused

LOG = "settle-test-log"
RECORDS = "settle-test-records"


class Engine:
    def __init__(self, ports):
        self.client = Client(ports)

    def leader(self, stream=LOG, patience=15):
        """The name of the server that leads a stream."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            try:
                leader = self.client.call(f"STREAM.INFO.{stream}")["cluster"].get("leader")
                if leader:
                    return leader
            except (NoAnswer, Refused):
                pass
            time.sleep(0.1)
        return None

    def is_whole(self):
        """Whether every server is there and has all of every stream."""
        try:
            for stream in (LOG, RECORDS):
                cluster = self.client.call(f"STREAM.INFO.{stream}")["cluster"]
                replicas = cluster.get("replicas", ())
                if not cluster.get("leader") or len(replicas) != 2:
                    return False
                if not all(replica.get("current") and not replica.get("offline") for replica in replicas):
                    return False
            return True
        except (NoAnswer, Refused):
            return False

    def owners(self):
        """Of each partition the member that owns it and the epoch; `None` without an answer."""
        result = []
        try:
            for number in range(PARTITIONS):
                record = self.client.last(RECORDS, f"settle.test.records.owner.{number}")
                record = json.loads(record) if record else {}
                result.append((record.get("member"), record.get("epoch", 0)))
        except (NoAnswer, Refused, ValueError):
            return None
        return result

    def create(self, name, subject, patience=30):
        """Makes a stream on three servers; a server that was away may not be used at once."""
        body = {"name": name, "subjects": [subject], "storage": "file", "num_replicas": 3, "retention": "limits"}
        end = time.monotonic() + patience
        while True:
            try:
                return self.client.call(f"STREAM.CREATE.{name}", body, timeout=5)
            except (NoAnswer, Refused):
                if time.monotonic() > end:
                    raise
            time.sleep(0.5)

    def fill(self, size, most):
        """Stores messages until the engine refuses one; how many bytes that took."""
        self.create("filler", "filler")
        stored = 0
        # Smaller and smaller messages, until not even a change finds room.
        while size >= 128 and stored < most:
            try:
                self.client.store("filler", b"x" * size, timeout=5)
                stored += size
            except (NoAnswer, Refused):
                size //= 8
        return stored

    def empty(self, patience=30):
        """Removes what `fill` has stored; `False` if the engine does not do it."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            try:
                self.client.call("STREAM.DELETE.filler", timeout=5)
                return True
            except Refused as problem:
                if problem.code == 10059:  # There is none (any more).
                    return True
            except NoAnswer:
                pass
            time.sleep(0.2)
        return False
