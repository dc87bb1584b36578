# Settle
# SPDX-License-Identifier: Apache-2.0
"""Deliberate mistakes between the gateway and what looks at it. Each check must find its own."""

import glob
import os

#: Name -> what it does, and the kind of finding that it must lead to.
PLANTS = {
    "drop-last": ("a device does not get a message that was acknowledged", "state"),
    "wrong-state": ("a device takes another value than it reports", "state"),
    "lose-journal": ("after a kill the journal is gone", "state"),
    "wrong-view": ("a report does not arrive", "view"),
    "reorder": ("two messages of a device change places", "order"),
    "invent": ("a device gets a message that nobody asked for", "invented"),
    "repeat-press": ("a press leaves twice", "press"),
    "wrong-step": ("people count with another step than they asked for", "step"),
    "wrong-value": ("people expect another value than they asked for", "value"),
    "refused": ("people take a value for allowed that is not", "rejected"),
    "taken": ("people take a value for not allowed that is", "accepted"),
}


class Plant:
    """One of them, or none."""

    def __init__(self, name, world):
        self.name, self.world, self.random = name, world, world.draw("plant") if name else None
        self.held = {}

    def happens(self, name, probability=0.3):
        return self.name == name and self.random.random() < probability

    @property
    def needs_kills(self):
        """Whether it shows only where a kill meets a value between its acceptance and its message."""
        return self.name == "lose-journal"

    def is_found(self, kinds):
        return self.name is not None and PLANTS[self.name][1] in kinds

    def note(self, message, note):
        """A message on its way to whoever checks the order."""
        held = self.held.pop(message.device, None)
        if held is None and self.happens("reorder", 0.5):
            self.held[message.device] = message
            return
        if self.happens("invent"):
            note(type(message)(message.at, message.device, message.topic, dict.fromkeys(message.values, "invented"), True))
        note(message)
        if held:
            note(held)
        if self.happens("repeat-press") and "press" in message.values:
            note(message)

    def take(self, device, values):
        if self.happens("drop-last"):
            return
        device.take(values)
        if self.happens("wrong-state"):
            device.state |= {name: value + 1 for name, value in device.state.items() if not isinstance(value, (bool, str))}

    def lets_report(self, topic):
        return topic.endswith("availability") or self.world.now() < self.world.start + 1 or not self.happens("wrong-view")

    def after_kill(self, folder):
        if self.name == "lose-journal":
            for path in glob.glob(f"{folder}/journal.db*"):
                os.remove(path)

    def argument(self, verb, argument, is_mistake):
        """What people believe that they asked for."""
        if verb == "step" and self.happens("wrong-step") or verb == "set" and not is_mistake \
                and isinstance(argument, (int, float)) and not isinstance(argument, bool) and self.happens("wrong-value"):
            return argument + 1
        return argument

    def is_mistake(self, is_mistake):
        return not is_mistake if self.name in ("refused", "taken") and is_mistake == (self.name == "refused") else is_mistake
