# Settle
# SPDX-License-Identifier: Apache-2.0
"""The devices of the test: what they are called, what they can do, and the files that say so.

Nothing here is shared with the product but what a person writes into device files.
"""

import json
from dataclasses import dataclass, field

#: What can be left out, and what it is.
KINDS = {
    "stop": "urgent words that end a position or a set-point",
    "travel": "devices that repeat a request, report their way, or report late what was asked before",
    "implies": "a lamp that its brightness turns on",
    "groups": "groups, with and without a topic of their own",
    "toggles": "quick toggles",
    "cuts": "connections that are lost, and acknowledgements that take longer than the gateway waits",
}


@dataclass(frozen=True)
class Property:
    """`kind`: number, boolean, choice or action."""

    name: str
    kind: str
    initial: object = None
    low: float = 0
    high: float = 0
    step: float = 1
    words: tuple = ()
    reports: bool = True
    #: Whether the gateway has a state topic to listen to, even if the device stays silent.
    has_state: bool = True

    def snap(self, value):
        if self.kind != "number":
            return value
        steps = (value - self.low) / self.step
        snapped = self.low + int(steps + 0.5) * self.step
        return int(snapped) if float(snapped).is_integer() else snapped

    def add(self, amount):
        """What a step makes of a value."""
        return lambda value: self.snap(min(max(value + amount, self.low), self.high))


@dataclass
class Device:
    """`kind` names the class that simulates it."""

    name: str
    kind: str
    topic: str
    properties: dict
    #: Its entry in the device file; "POLICY" in it changes with each reload.
    text: str
    #: Further parameters of the simulation.
    details: dict = field(default_factory=dict)


@dataclass
class Site:
    """What one person at a time uses: devices that belong together."""

    name: str
    devices: list
    #: Group name -> names of its members; the scenes, each with the values of each device or group.
    groups: dict = field(default_factory=dict)
    scenes: dict = field(default_factory=dict)


def lamp(name, topic, implies):
    """Power and brightness in one message."""
    properties = {
        "power": Property("power", "boolean", False),
        "brightness": Property("brightness", "number", 100, 0, 254),
    }
    if implies:
        text = (
            f"{name}:\n  profile: zigbee2mqtt/light\n  topic: {topic}\n  properties:\n"
            "    color: none\n    color_temp: none\n    color_mode: none\n    brightness: {policy: {delay: POLICY}}\n"
        )
    else:
        text = (
            f"{name}:\n  topic: {topic}\n  merge: true\n  properties:\n"
            '    power: {type: boolean, on: "ON", off: "OFF", command: {topic: $topic/set, payload: {state: $value}},'
            " state: {topic: $topic, value: /state}}\n"
            "    brightness: {type: integer, range: [0, 254], step: 1, policy: {delay: POLICY},"
            " command: {topic: $topic/set, payload: {brightness: $value}}, state: {topic: $topic, value: /brightness}}\n"
        )
    return Device(name, "Lamp", topic, properties, text, {"implies": implies})


def cover(name, travels):
    topic = f"blinds/{name}"
    properties = {
        "position": Property("position", "number", 50, 0, 100),
        "command": Property("command", "action", words=("STOP", "OPEN", "CLOSE"), reports=False, has_state=False),
    }
    text = (
        f"{name}:\n  topic: {topic}\n  availability: {{topic: $topic/availability}}\n  properties:\n"
        "    position: {type: integer, range: [0, 100], step: 1, policy: {delay: POLICY, max_wait: none},"
        " command: {topic: $topic/set, payload: {position: $value}},"
        " state: {topic: $topic, value: /position}, confirm: {within: 6s}}\n"
        "    command: {type: action, values: [OPEN, CLOSE, STOP], urgent: [OPEN, CLOSE, STOP], ends: [position],"
        " command: {topic: $topic/set, payload: {state: $value}}}\n"
    )
    return Device(name, "Cover", topic, properties, text, {"travels": travels})


def plain(name, reports, has_state=True, confirm=""):
    """A number of its own topic, and where it reports, a button."""
    topic = f"plain/{name}"
    properties = {"level": Property("level", "number", 0, 0, 1000000, reports=reports, has_state=has_state)}
    state = f", state: {{topic: $topic/state}}{confirm}" if has_state else ""
    text = (
        f"{name}:\n  topic: {topic}\n  properties:\n"
        f"    level: {{type: integer, range: [0, 1000000], step: 1, policy: {{delay: POLICY}}, command: {{topic: $topic/level/set}}{state}}}\n"
    )
    if reports:
        properties["press"] = Property("press", "action", reports=False, has_state=False)
        text += "    press: {type: action, command: {topic: $topic/press/set}}\n"
    return Device(name, "Plain", topic, properties, text)


def switch(name):
    topic = f"plain/{name}"
    text = (
        f"{name}:\n  topic: {topic}\n  properties:\n    power: {{type: boolean, command: {{topic: $topic/power/set}},"
        " state: {topic: $topic/state}}\n"
    )
    return Device(name, "Plain", topic, {"power": Property("power", "boolean", False)}, text)


def thermostat(name, is_late):
    topic = f"heating/{name}"
    properties = {
        "target": Property("target", "number", 20, 5, 30, 0.5),
        "mode": Property("mode", "choice", "heat", words=("off", "heat", "auto")),
    }
    text = (
        f"{name}:\n  topic: {topic}\n  availability: {{topic: $topic/availability}}\n  properties:\n"
        "    target: {type: number, range: [5, 30], step: 0.5, policy: {delay: 800ms, max_wait: none},"
        " command: {topic: $topic/set, payload: {setpoint: $value}},"
        " state: {topic: $topic, value: /setpoint}, confirm: {within: 5s, retries: 2}}\n"
        '    mode: {type: choice, values: ["off", heat, auto], urgent: ["off"], ends: [target],'
        " command: {topic: $topic/set, payload: {mode: $value}}, state: {topic: $topic, value: /mode}}\n"
    )
    return Device(name, "Thermostat", topic, properties, text, {"late": is_late})


def sites(without):
    """All sites, without the kinds that are left out."""
    implies, travels = "implies" not in without, "travel" not in without
    lamp_topic = "zigbee2mqtt/" if implies else "lamps/"
    found = [
        Site(
            "room", [lamp(name, lamp_topic + name, implies) for name in ("lamp-1", "lamp-2")],
            scenes={
                "evening": {"lamp-1": {"power": True, "brightness": 80}, "lamp-2": {"brightness": 120}},
                "night": {"lamp-1": {"power": False}, "lamp-2": {"power": False}},
            },
        ),
        Site("blind-1", [cover("blind-1", travels)]),
        Site("blind-2", [cover("blind-2", travels)]),
        Site("dial", [plain("dial", True)]),
        Site("deaf", [plain("deaf", False, confirm=", confirm: {within: 1s}")]),
        Site("mute", [plain("mute", False, has_state=False)]),
        Site("radiator", [thermostat("radiator", travels)]),
    ]
    if "toggles" not in without:
        found.append(Site("switch", [switch("switch")]))
    if "groups" not in without:
        for name in ("hall", "attic"):
            members = [lamp(f"{name}-{number}", f"groups/{name}-{number}", False) for number in (1, 2)]
            found.append(Site(
                name, members, {f"all-{name}": [device.name for device in members]},
                {f"bright-{name}": {f"all-{name}": {"brightness": 200}, members[0].name: {"power": True}}},
            ))
    return found


#: The group whose bridge has a topic for it.
GROUP_TOPICS = {"all-hall": "groups/all-hall"}


def device_file(sites_, delay_ms):
    text = "".join(device.text.replace("POLICY", f"{delay_ms}ms") for site in sites_ for device in site.devices)
    groups = {
        name: {"members": members} | ({"topic": GROUP_TOPICS[name]} if name in GROUP_TOPICS else {})
        for site in sites_ for name, members in site.groups.items()
    }
    scenes = {name: values for site in sites_ for name, values in site.scenes.items()}
    # JSON is YAML.
    return text + (f"groups: {json.dumps(groups)}\n" if groups else "") + f"scenes: {json.dumps(scenes)}\n"
