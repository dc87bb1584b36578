# Settle
# SPDX-License-Identifier: Apache-2.0
"""Follows the cluster's log: the epochs of each partition may only grow, and each has one owner."""

import threading

from nats import Client, NoAnswer, Refused


class Frame:
    """What the test needs of an entry, as Sources/Engine/FrameCoding.swift writes it."""

    def __init__(self, data):
        if len(data) < 3 or data[0] != 1 or data[1] not in (1, 2, 3):
            raise ValueError("not a frame of version 1")
        self.kind = ("claim", "changes", "snapshot")[data[1] - 1]
        self.epoch, place = number(data, 2)
        self.number, place = number(data, place)
        _, place = number(data, place)  # Where the newest snapshot begins.
        self.member = None
        if self.kind == "claim":
            size, place = number(data, place)
            self.member = data[place:place + size].decode()


def number(data, place):
    """A LEB128 number and the place after it."""
    result, shift = 0, 0
    while True:
        byte = data[place]
        place += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, place
        shift += 7


# How many entries of each log are compared with what is read.
REMEMBERED = 64


class LogCheck:
    """Finds entries of a partition's log that two owners have written."""

    def __init__(self):
        self.epochs, self.entries, self.owners = {}, {}, {}
        self.frames, self.unreadable, self.violations = 0, 0, []

    def append(self, sequence, subject, data):
        self.frames += 1
        try:
            frame = Frame(data)
        except (ValueError, IndexError):
            self.unreadable += 1
            return
        entries = self.entries.setdefault(subject, {})
        if entries.get(frame.number) == data:
            return  # After an election, an entry may have a higher sequence number, and is read again.
        last = max(entries, default=0)
        if frame.number <= last:
            self.violations.append(f"{subject} #{sequence}: {frame.kind} with number {frame.number} after {last}")
        entries[frame.number] = data
        entries.pop(frame.number - REMEMBERED, None)
        highest = self.epochs.get(subject, 0)
        if frame.epoch < highest:
            self.violations.append(f"{subject} #{sequence}: {frame.kind} of epoch {frame.epoch} after epoch {highest}")
        self.epochs[subject] = max(frame.epoch, highest)
        if frame.member is not None:
            owner = self.owners.setdefault((subject, frame.epoch), frame.member)
            if owner != frame.member:
                self.violations.append(f"{subject} #{sequence}: {frame.member} claims epoch {frame.epoch} of {owner}")


class LogReader(threading.Thread):
    """Reads the log every few seconds: an owner removes what a snapshot has replaced."""

    def __init__(self, ports, stream):
        super().__init__(daemon=True)
        self.client, self.stream, self.check = Client(ports), stream, LogCheck()
        self.next_sequence, self.missed = 1, 0
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(3):
            try:
                self.read()
            except (NoAnswer, Refused):
                pass  # An election, or no stream yet.

    def read(self):
        for sequence, subject, data in self.client.read(self.stream, self.next_sequence):
            self.missed += sequence - self.next_sequence
            self.next_sequence = sequence + 1
            self.check.append(sequence, subject, data)

    def finish(self, attempts=10):
        """Reads the rest; `False` if that fails."""
        self.ended.set()
        if self.is_alive():
            self.join()
        for _ in range(attempts):
            try:
                self.read()
                return True
            except (NoAnswer, Refused):
                threading.Event().wait(1)
        return False
