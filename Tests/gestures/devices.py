# Settle
# SPDX-License-Identifier: Apache-2.0
"""Simulated devices: what a message makes of them, and what they report.

A world gives them `later(delay, function)`, `random`, `report(topic, payload)` and `travels(is_turn)`.
"""

import json
from collections import deque

POSITIONS_PER_SECOND, WAY_EVERY = 40, 0.2


class Simulated:
    """A device that has what the gateway sends, and reports it at once."""

    def __init__(self, device, world):
        self.device, self.world, self.topic = device, world, device.topic
        self.state = {name: part.initial for name, part in device.properties.items() if part.kind != "action"}
        self.is_restless = False

    def command_topics(self):
        return [f"{self.topic}/set"]

    def request_topics(self):
        return [f"{self.topic}/get"]

    def read(self, topic, payload):
        """The values of a message, by property."""
        raise NotImplementedError

    def take(self, values):
        self.state |= {name: value for name, value in values.items() if name in self.state}
        self.report()

    def report(self):
        raise NotImplementedError

    def hand(self, values):
        """Somebody changes the device itself."""
        self.state |= values
        self.report()

    def announce(self):
        if "availability" in self.device.text:
            self.world.report(f"{self.topic}/availability", "online")
        if "zigbee2mqtt/light" in self.device.text:
            self.world.report(f"{self.topic}/availability", json.dumps({"state": "online"}))
            self.world.report("zigbee2mqtt/bridge/state", json.dumps({"state": "online"}))
        self.report()


class Plain(Simulated):
    """Bare values, each on a topic of its own; presses of a button are only counted."""

    def command_topics(self):
        return [f"{self.topic}/{name}/set" for name in self.device.properties]

    def read(self, topic, payload):
        name = topic.split("/")[-2]
        return {name: payload if self.device.properties[name].kind == "action" else json.loads(payload)}

    def report(self):
        for name, value in self.state.items():
            if self.device.properties[name].reports:
                self.world.report(f"{self.topic}/state", json.dumps(value))


class Lamp(Simulated):
    """One JSON message for both properties; where brightness implies it, it turns the lamp on or off."""

    def read(self, topic, payload):
        message = json.loads(payload)
        values = {"power": message["state"] == "ON"} if "state" in message else {}
        return values | ({"brightness": message["brightness"]} if "brightness" in message else {})

    def take(self, values):
        if self.device.details["implies"] and "brightness" in values:
            values = {"power": values["brightness"] > 0} | values
        super().take(values)

    def report(self):
        state = {"state": "ON" if self.state["power"] else "OFF", "brightness": self.state["brightness"]}
        self.world.report(self.topic, json.dumps(state))


class Cover(Simulated):
    """It takes its time, and stops where it is. Where it travels, it repeats the request and reports its way."""

    def __init__(self, device, world):
        super().__init__(device, world)
        self.goal, self.journey = None, 0

    def read(self, topic, payload):
        message = json.loads(payload)
        return {"position": message["position"]} if "position" in message else {"command": message["state"]}

    def take(self, values):
        word = values.get("command")
        if word == "STOP":
            self.stop()
        else:
            self.go({"OPEN": 100, "CLOSE": 0}.get(word, values.get("position")), is_asked=word is None)

    def stop(self):
        self.journey += 1
        self.is_restless = False
        self.report()

    def go(self, goal, is_asked):
        self.journey += 1
        if goal == self.state["position"]:
            self.stop()
            return
        self.world.travels(is_turn=self.is_restless)
        self.goal, self.is_restless = goal, True
        if self.device.details["travels"] and is_asked:
            self.world.report(self.topic, json.dumps({"position": goal}))
        self.world.later(WAY_EVERY, self.advance, self.journey)

    def advance(self, journey):
        if journey != self.journey:
            return
        position = self.state["position"]
        most = int(POSITIONS_PER_SECOND * WAY_EVERY)
        position += max(-most, min(most, self.goal - position))
        self.state["position"] = position
        if position == self.goal:
            self.stop()
        else:
            if self.device.details["travels"]:
                self.report()
            self.world.later(WAY_EVERY, self.advance, journey)

    def report(self):
        self.world.report(self.topic, json.dumps({"position": self.state["position"]}))


class Thermostat(Simulated):
    """It answers late, in order. Where it answers each request, what was asked before is among the answers."""

    def __init__(self, device, world):
        super().__init__(device, world)
        #: The state after each request that is not answered yet, oldest first.
        self.answers = deque()

    def read(self, topic, payload):
        message = json.loads(payload)
        values = {"target": message["setpoint"]} if "setpoint" in message else {}
        return values | ({"mode": message["mode"]} if "mode" in message else {})

    def take(self, values):
        self.state |= values
        self.answers.append(dict(self.state))
        self.is_restless = True
        if len(self.answers) == 1:
            self.wait()

    def wait(self):
        self.world.later(self.world.random.uniform(0.2, 3), self.answer)

    def answer(self):
        if not self.device.details["late"]:
            self.answers = deque([self.state])
        state = self.answers.popleft()
        self.is_restless = bool(self.answers)
        self.report(state)
        if self.answers:
            self.wait()

    def report(self, state=None):
        state = state or self.state
        self.world.report(self.topic, json.dumps({"setpoint": state["target"], "mode": state["mode"]}))


def simulate(device, world):
    return {"Plain": Plain, "Lamp": Lamp, "Cover": Cover, "Thermostat": Thermostat}[device.kind](device, world)
