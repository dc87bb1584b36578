# Settle
# SPDX-License-Identifier: Apache-2.0
"""The order of a device's messages: none that an older change caused leaves after one that a newer caused.

Of each message it looks for a change that can have caused it: asked before the message left, with its
value, and not older than what has left already. Where several can have, the oldest is taken, so that a
violation is one however the messages are read.
"""

from collections import deque
from dataclasses import dataclass

from intents import ACCEPTED, LOST
from model import Finding

REMEMBERED = 400


@dataclass
class Message:
    """One message that the gateway sent; `is_kept` is false if it was lost with the connection."""

    at: float
    device: str
    topic: str
    values: dict
    is_kept: bool

    def __str__(self):
        return f"{self.topic} {self.values}{'' if self.is_kept else ' (lost with the connection)'}"


def overwrites(device, first, second):
    """Whether one of two changes, each a property and a value, ends or overwrites the other."""
    if first[0] == second[0]:
        return True
    if device.kind == "Cover":
        return True
    if device.kind == "Thermostat":
        return ("mode", "off") in (first, second)
    if device.kind == "Lamp" and device.details["implies"]:
        values = dict([first, second])
        return values["power"] != (values["brightness"] > 0)
    return False


class MessageOrder:
    """Follows one device."""

    def __init__(self, device):
        self.device = device
        self.parts, self.sent = deque(maxlen=REMEMBERED), deque(maxlen=REMEMBERED)

    def add(self, part):
        if part.answer.status in (ACCEPTED, LOST):
            self.parts.append(part)

    def causes(self, message, name, value):
        """The numbers of the changes that can have caused a value of a message, the oldest first."""
        return [
            part.number for part in self.parts
            if part.property == name and part.change.at <= message.at and part.outcome is not None and part.outcome.allows(value)
        ]

    def newer(self, item, number):
        """The newest change that has left already, is newer than `number` and excludes it."""
        found = [sent for sent in self.sent if sent[0] > number and overwrites(self.device, sent[1], item)]
        return max(found, key=lambda sent: sent[0], default=None)

    def check(self, message):
        chosen, doubtful = {}, {}
        for item in message.values.items():
            causes = self.causes(message, *item)
            if not causes:
                raise Finding("invented", f"{self.device.name}: nobody asked for {message}")
            possible = [number for number in causes if not self.newer(item, number)]
            if possible:
                chosen[item] = possible[0]
            else:
                chosen[item] = doubtful[item] = causes[-1]
        # A merged message is as new as its newest change.
        age = max(chosen.values())
        self.sent.extend((number, item, message) for item, number in chosen.items())
        for item, number in doubtful.items():
            newer = self.newer(item, age)
            if newer:
                raise Finding(
                    "order", f"{self.device.name}: {message}, which change #{number} caused, left after {newer[2]},"
                    f" which the newer #{newer[0]} caused")
