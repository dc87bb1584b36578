# Settle
# SPDX-License-Identifier: Apache-2.0

"""The devices: their files, and the devices themselves as far as they answer."""

import json
import os
import re

from mqtt import Client

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

HOUSE = """\
desk-lamp:
  name: Desk lamp
  profile: zigbee2mqtt/light
  topic: zigbee2mqtt/desk_lamp
  properties:
    effect: {type: action, values: [blink, okay], command: {topic: zigbee2mqtt/desk_lamp/set,
      payload: {effect: $value}}}
hall-blind: {name: Hall blind, profile: zigbee2mqtt/cover, topic: zigbee2mqtt/hall_blind}
hall-thermostat:
  name: Hall thermostat
  profile: zigbee2mqtt/thermostat
  topic: zigbee2mqtt/hall_thermostat
  properties:
    local_temperature: {type: number, unit: °C,
      state: {topic: zigbee2mqtt/hall_thermostat, value: /local_temperature}}
    running_state: {type: choice, values: [idle, heat, cool],
      state: {topic: zigbee2mqtt/hall_thermostat, value: /running_state}}
    preset: {type: choice, values: [none, eco], command: {topic: zigbee2mqtt/hall_thermostat/set,
      payload: {preset: $value}}, state: {topic: zigbee2mqtt/hall_thermostat, value: /preset}}
plug: {name: Plug, profile: zigbee2mqtt/switch, topic: zigbee2mqtt/plug}
ceiling-fan:
  name: Ceiling fan
  profile: esphome/fan
  topic: node
  parameters: {object: main}
  properties:
    mode: {type: choice, values: [breeze, sleep], command: {topic: node/mode/set},
      state: {topic: node/mode}}
porch:
  name: Porch
  merge: true
  properties:
    power_l1: {type: boolean, on: "ON", off: "OFF", command: {topic: zigbee2mqtt/porch/set,
      payload: {state_l1: $value}}, state: {topic: zigbee2mqtt/porch, value: /state_l1}}
    brightness_l1: {type: integer, range: [0, 254], step: 1, command: {topic: zigbee2mqtt/porch/set,
      payload: {brightness_l1: $value}}, state: {topic: zigbee2mqtt/porch, value: /brightness_l1}}
    power_l2: {type: boolean, on: "ON", off: "OFF", command: {topic: zigbee2mqtt/porch/set,
      payload: {state_l2: $value}}, state: {topic: zigbee2mqtt/porch, value: /state_l2}}
    brightness_l2: {type: integer, range: [0, 254], step: 1, command: {topic: zigbee2mqtt/porch/set,
      payload: {brightness_l2: $value}}, state: {topic: zigbee2mqtt/porch, value: /brightness_l2}}
hallway: {name: Hallway, profile: zwave-js/dimmer, topic: zwave/7}
front-door:
  name: Front door
  properties:
    lock: {type: boolean, on: LOCK, off: UNLOCK, command: {topic: lock/set}, state: {topic: lock}}
    led_mode: {type: choice, values: [dim, bright], command: {topic: lock/led/set}}
    sound_volume: {type: integer, range: [0, 10], command: {topic: lock/volume/set},
      state: {topic: lock/volume}}
strip:
  name: Strip
  properties:
    power: {type: boolean, command: {topic: strip/power/set}, state: {topic: strip/power}}
    brightness: {type: integer, range: [10, 100], step: 1, unit: "%",
      command: {topic: strip/brightness/set}, state: {topic: strip/brightness}}
    color_temp: {type: integer, range: [2000, 6500], step: 1, unit: K, excludes: [color],
      command: {topic: strip/white/set}, state: {topic: strip/white}}
    color: {type: color, encode: hs, command: {topic: strip/color/set}, state: {topic: strip/color}}
mixer:
  name: Mixer
  properties:
    level: {type: number, range: [0, 100], step: 0.5, unit: dB,
      policy: {delay: 1s, max_wait: none}, command: {topic: mixer/level/set},
      state: {topic: mixer/level}}
    gain: {type: integer, command: {topic: mixer/gain/set}, state: {topic: mixer/gain}}
    source: {type: choice, values: [line, "phono 2"], command: {topic: mixer/source/set},
      state: {topic: mixer/source}}
    label: {type: text, command: {topic: mixer/label/set}, state: {topic: mixer/label}}
    loud: {type: boolean, command: {topic: mixer/loud/set}, state: {topic: mixer/loud}}
    tint: {type: color, command: {topic: mixer/tint/set}, state: {topic: mixer/tint}}
    spare: {type: boolean, command: {topic: mixer/spare/set}}
    chime: {type: action, values: [ring, "mute it"], command: {topic: mixer/chime/set}}
led-bar: {name: Led bar, profile: wled/light, topic: wled/bar}
sofa-lamp: {name: Sofa lamp, profile: zigbee2mqtt/light, topic: zigbee2mqtt/sofa_lamp}
shelf-lamp: {name: Shelf lamp, profile: zigbee2mqtt/light, topic: zigbee2mqtt/shelf_lamp}
slats:
  name: Slats
  properties:
    position: {type: integer, range: [0, 99], step: 1, command: {topic: slats/position/set},
      state: {topic: slats/position}}
    tilt: {type: integer, range: [-90, 90], step: 1, command: {topic: slats/tilt/set},
      state: {topic: slats/tilt}}
door:
  name: Door
  properties:
    opener: {type: action, values: [buzz], command: {topic: door/set}}
alarm:
  name: Alarm
  properties:
    warning: {class: siren, type: action, values: [stop, burglar, fire], command: {topic: alarm/set}}
knob:
  name: Knob
  properties:
    action: {class: remote, type: choice, values: ["on", hold], state: {topic: knob, value: /action}}
extractor:
  name: Extractor
  properties:
    fan_state: {type: boolean, on: "ON", off: "OFF", command: {topic: extractor/set},
      state: {topic: extractor}}
    fan_mode: {type: choice, values: [low, high, auto], command: {topic: extractor/mode/set},
      state: {topic: extractor/mode}}
cooler:
  name: Cooler
  properties:
    target_temperature: {type: number, range: [5, 30], step: 0.5, unit: °C,
      command: {topic: cooler/low/set}, state: {topic: cooler/low}}
    occupied_cooling_setpoint: {type: number, range: [10, 35], step: 0.5, unit: °C,
      command: {topic: cooler/high/set}, state: {topic: cooler/high}}
    mode: {type: choice, values: ["off", heat, heat_cool, emergency_heating],
      command: {topic: cooler/mode/set}, state: {topic: cooler/mode}}
    fan_mode: {type: choice, values: [auto, "on"], command: {topic: cooler/fan/set},
      state: {topic: cooler/fan}}
water:
  name: Water
  properties:
    supply: {class: valve, type: boolean, command: {topic: water/set}, state: {topic: water}}
    child_lock: {type: boolean, on: LOCK, off: UNLOCK, command: {topic: water/lock/set},
      state: {topic: water/lock}}
bath-lamp:
  name: Bath lamp
  device: {manufacturer: IKEA, model: LED1545G12, url: "http://z2m.local/#/device/0x5/info",
    identifiers: [zigbee2mqtt_0x5]}
  profile: zigbee2mqtt/light
  topic: zigbee2mqtt/bath_lamp
meter:
  name: Meter
  area: Utility room
  properties:
    power: {type: boolean, on: "ON", off: "OFF", command: {topic: zigbee2mqtt/meter/set,
      payload: {state: $value}}, state: {topic: zigbee2mqtt/meter, value: /state}}
    active_power: {type: number, unit: W, state: {topic: zigbee2mqtt/meter, value: /power}}
    energy: {type: number, unit: kWh, state: {topic: zigbee2mqtt/meter, value: /energy}}
    humidity: {type: number, unit: "%", state: {topic: zigbee2mqtt/meter, value: /humidity}}
    voc: {type: number, unit: µg/m³, state: {topic: zigbee2mqtt/meter, value: /voc}}
    battery: {type: number, unit: "%", state: {topic: zigbee2mqtt/meter, value: /battery}}
    linkquality: {type: number, unit: lqi, state: {topic: zigbee2mqtt/meter, value: /linkquality}}
    contact: {type: boolean, state: {topic: zigbee2mqtt/meter, value: /contact}}
    occupancy: {type: boolean, state: {topic: zigbee2mqtt/meter, value: /occupancy}}
    phase: {type: choice, values: [idle, busy], state: {topic: zigbee2mqtt/meter, value: /phase}}
    note: {type: text, state: {topic: zigbee2mqtt/meter, value: /note}}
boiler:
  name: Boiler
  properties:
    target_temperature: {type: number, range: [40, 90], step: 1, unit: °F,
      command: {topic: boiler/set}, state: {topic: boiler}}
    mode: {type: choice, values: [party, away], command: {topic: boiler/mode/set},
      state: {topic: boiler/mode}}
dim:
  name: Dim
  properties:
    power: {type: boolean, command: {topic: dim/power/set}, state: {topic: dim/power}}
    level: {type: number, range: [0, 1], command: {topic: dim/level/set}, state: {topic: dim/level}}
groups:
  living-room:
    name: Living room
    device: {identifiers: [zigbee2mqtt_base_1]}
    members: [sofa-lamp, shelf-lamp]
    topic: zigbee2mqtt/living_room
    profile: zigbee2mqtt/light
"""

# The groups of the Zigbee bridge.
MEMBERS = {"living_room": ["sofa_lamp", "shelf_lamp"]}

# How devices say that they are there, and what Home Assistant shows after each payload.
# `None`: as before.
PRESENCE = {
    "member": ("{topic: seen/member, value: /state}", [
        ("{}", None), ("online", None), ('{"state":"offline"}', False), ("null", None),
        ("[]", None), ('{"state":"online"}', True), ('{"state":"Offline?"}', None),
    ]),
    "deep": ("{topic: seen/deep, value: /a/b}", [
        ('{"x":1}', None), ('{"a":{"b":"offline"}}', False), ('{"a":3}', None),
        ('{"a":{"b":"online"}}', True),
    ]),
    "boolean": ("{topic: seen/boolean, online: true, offline: false}", [
        ("false", False), ("true", True), ("maybe", None),
    ]),
    "flag": ("{topic: seen/flag, value: /up, online: true, offline: false}", [
        ('{"up":false}', False), ('{"up":null}', None), ('{"up":true}', True),
    ]),
    "words": ("{topic: seen/words, online: [ready, \"it's\"], offline: [init, sleeping, lost]}", [
        ("sleeping", False), ("ready", True), ("lost", False), ("it's", True), ("", None),
    ]),
    "number": ("{topic: seen/number, online: 1, offline: 0}", [("0", False), ("1", True)]),
    "place": ("{topic: seen/place, value: /1}", [
        ('["online","offline"]', False), ("[]", None), ('["offline","online"]', True),
    ]),
    "two": ("[{topic: seen/two/a}, {topic: seen/two/b}]", []),
}


class House:
    """The devices, as far as they answer."""

    def __init__(self, port):
        self.states = {}
        self.client = Client(port, "devices", ["#"], self.hear)

    def hear(self, topic, payload, retained):
        if retained or not topic.endswith(("/set", "/command", "/api")) or topic.startswith("settle/"):
            return
        if topic.startswith("zigbee2mqtt/"):
            device = topic.split("/")[1]
            for member in MEMBERS.get(device, [device]):
                self.report(member, json.loads(payload))
        elif topic.startswith("wled/"):
            # A strip reports its brightness.
            if (level := json.loads(payload).get("bri")) is not None:
                self.client.publish(topic[: -len("/api")] + "/g", str(level), retain=True)
        elif topic.endswith("/command"):
            place = topic[: -len("/command")]
            self.client.publish(f"{place}/state", payload, retain=True)
            if place.endswith("/speed_level"):
                self.client.publish(f"{place[: -len('/speed_level')]}/state", "ON", retain=True)
        else:
            self.client.publish(topic[: -len("/set")], payload, retain=True)

    def report(self, device, changes):
        state = self.states.setdefault(device, {})
        if "blind" in device and changes.get("state") in ("OPEN", "CLOSE", "STOP"):
            changes = {"position": {"OPEN": 100, "CLOSE": 0}.get(changes["state"], 50)}
        if "lamp" in device and "color_mode" not in changes:
            # Zigbee2MQTT says which of both a lamp shows.
            modes = {"color": "xy", "color_temp": "color_temp"}
            changes |= {"color_mode": mode for member, mode in modes.items() if member in changes}
        state.update(changes)
        self.client.publish(f"zigbee2mqtt/{device}", json.dumps(state), retain=True)


def profiles():
    """A device for every profile that comes with the program."""
    folder = f"{ROOT}/devices/profiles"
    number = 0
    for file in sorted(os.listdir(folder)):
        lines = open(f"{folder}/{file}").read().split("\n")
        anchor = next((l for l in lines if "parameters: &parameters {" in l), "")
        for place, line in enumerate(lines):
            if not re.fullmatch(r"[a-z][\w/.-]*:", line):
                continue
            name, given = line[:-1], ""
            if name == "zigbee2mqtt/device":
                continue  # It has no properties: imported devices bring theirs.
            for below in lines[place + 1:]:
                if below[:1] not in ("", " "):
                    break
                if below.startswith("  parameters: "):
                    source = anchor if below.endswith("*parameters") else below
                    given = "  parameters: " + source[source.index("{"):].replace("null", '"1"')
            number += 1
            # No one's words for presence, so that they count as there.
            yield f"p{number}", (
                f"p{number}:\n  name: P{number}\n  profile: {name}\n  topic: prof/p{number}\n"
                + (f"{given}\n" if given else "")
            )
