# Settle
# SPDX-License-Identifier: Apache-2.0
"""A house of 40 devices in 7 areas, and the properties that devices of tests and pictures have."""

POWER = "power: {type: boolean, command: {topic: $topic/power, payload: $value}, state: {topic: $state/power}}"
BRIGHTNESS = ('brightness: {type: integer, range: [0, 100], unit: "%", command: {topic: $topic/brightness, payload: $value}, '
              "state: {topic: $state/brightness}, policy: {delay: 600ms, max_wait: none}}")
WHITE = "color_temp: {type: integer, range: [150, 500], unit: mired, display: {unit: K, scale: mired}, command: {topic: $topic/color_temp, payload: $value}, state: {topic: $state/color_temp}}"
COLOR = "color: {type: color, encode: hex, command: {topic: $topic/color, payload: $value}, state: {topic: $state/color}, confirm: {within: 5s, tolerance: 0.01}}"
HEAT = ("target_temperature: {type: number, range: [5, 30], step: 0.5, unit: °C, command: {topic: $topic/target_temperature, payload: $value}, state: {topic: $state/target_temperature}}, "
        'mode: {type: choice, values: ["off", heat, auto], command: {topic: $topic/mode, payload: $value}, state: {topic: $state/mode}}, '
        "local_temperature: {type: number, unit: °C, state: {topic: $state/local_temperature}}")
BLIND = ('position: {type: integer, range: [0, 100], unit: "%", command: {topic: $topic/position, payload: $value}, state: {topic: $state/position}}, '
         "command: {type: action, name: Movement, values: [OPEN, CLOSE, STOP], urgent: [OPEN, CLOSE, STOP], ends: [position], command: {topic: $topic/command, payload: $value}}")
SPEED = "speed: {type: integer, range: [0, 5], command: {topic: $topic/speed, payload: $value}, state: {topic: $state/speed}}"
FLOW = "flow: {type: number, range: [0, 12], step: 0.1, unit: l/min, command: {topic: $topic/flow, payload: $value}, state: {topic: $state/flow}, confirm: {within: 300ms}}"
AIR = ("temperature: {type: number, unit: °C, state: {topic: $state/temperature}}, humidity: {type: number, unit: \"%\", state: {topic: $state/humidity}}")
EFFECT = "effect: {type: choice, values: [None, Candle, Aurora, Waves], command: {topic: $topic/effect, payload: $value}, state: {topic: $state/effect}}"
# A lamp as Zigbee2MQTT describes it: it says its mode.
MODE = "color_mode: {type: choice, values: [xy, color_temp, hs], state: {topic: $state/color_mode}}"
WATTS = "load: {type: number, unit: W, state: {topic: $state/load}}"
PPM = "co2: {type: number, unit: ppm, state: {topic: $state/co2}}"
BATTERY = 'battery: {type: integer, range: [0, 100], unit: "%", state: {topic: $state/battery}}'
TIMER = "timer: {type: integer, range: [0, 1440], unit: min, command: {topic: $topic/timer, payload: $value}, state: {topic: $state/timer}}"
LOCK = "lock: {type: boolean, class: lock, on: LOCK, off: UNLOCK, command: {topic: $topic/lock, payload: $value}, state: {topic: $state/lock}, decode: {on: LOCKED, off: UNLOCKED}}"
CONTACT = "contact: {type: boolean, state: {topic: $state/contact}}"


def sensor(name, kind=None):
    return f"{name}: {{type: boolean, {f'class: {kind}, ' if kind else ''}state: {{topic: $state/{name}}}}}"


HOUSE = [
    ("floor-lamp", "Floor lamp", "Living room", [POWER, BRIGHTNESS, WHITE, COLOR, MODE], {"power": "true", "brightness": "72", "color_temp": "400", "color": "#ffb46b", "color_mode": "xy"}),
    ("living-ceiling", "Ceiling", "Living room", [POWER, BRIGHTNESS], {"power": "false", "brightness": "80"}),
    ("shelf-strip", "Shelf strip", "Living room", [POWER, BRIGHTNESS, COLOR, MODE], {"power": "true", "brightness": "40", "color": "#5b7cff", "color_mode": "xy"}),
    ("television", "TV plug", "Living room", [POWER, WATTS], {"power": "true", "load": "84.6"}),
    ("living-radiator", "Radiator", "Living room", [HEAT], {"target_temperature": "21", "mode": "heat", "local_temperature": "20.75"}),
    ("living-blind", "Balcony blind", "Living room", [BLIND], {"position": "35"}),
    ("living-air", "Air", "Living room", [AIR, PPM], {"temperature": "21.34", "humidity": "48", "co2": "1240"}),
    ("balcony-door", "Balcony door", "Living room", [CONTACT, BATTERY], {"contact": "true", "battery": "81"}),
    ("living-motion", "Motion", "Living room", [sensor("occupancy"), BATTERY], {"occupancy": "true", "battery": "64"}),
    ("kitchen-ceiling", "Ceiling", "Kitchen", [POWER, BRIGHTNESS, WHITE], {"power": "true", "brightness": "100", "color_temp": "250"}),
    ("worktop", "Worktop light", "Kitchen", [POWER, BRIGHTNESS], {"power": "true", "brightness": "49"}),
    ("coffee", "Espressomühle", "Kitchen", [POWER], {"power": "true"}),
    ("hood", "Cooker hood", "Kitchen", [SPEED], {"speed": "2"}),
    ("kitchen-window", "Window", "Kitchen", [CONTACT, BATTERY], {"contact": "false", "battery": "55"}),
    ("dishwasher-leak", "Leak at the dishwasher", "Kitchen", [sensor("water_leak"), BATTERY], {"water_leak": "false", "battery": "90"}),
    ("kitchen-smoke", "Smoke alarm", "Kitchen", [sensor("smoke"), BATTERY], {"smoke": "false", "battery": "77"}),
    ("kitchen-air", "Air", "Kitchen", [AIR], {"temperature": "22.4", "humidity": "51"}),
    ("bedside-left", "Bedside left", "Bedroom", [POWER, BRIGHTNESS, WHITE], {"power": "true", "brightness": "18", "color_temp": "470"}),
    ("bedside-right", "Bedside right", "Bedroom", [POWER, BRIGHTNESS, WHITE], {"power": "false", "brightness": "18", "color_temp": "470"}),
    ("bedroom-ceiling", "Ceiling", "Bedroom", [POWER, BRIGHTNESS], {"power": "false", "brightness": "55"}),
    ("bedroom-radiator", "Radiator", "Bedroom", [HEAT], {"target_temperature": "18", "mode": "auto", "local_temperature": "18.2"}),
    ("bedroom-blind", "Blind", "Bedroom", [BLIND], {"position": "100"}),
    ("bedroom-air", "Air", "Bedroom", [AIR], {"temperature": "18.2", "humidity": "55"}),
    ("bath-mirror", "Mirror", "Bathroom", [POWER, BRIGHTNESS], {"power": "false", "brightness": "100"}),
    ("bath-radiator", "Towel rail", "Bathroom", [HEAT], {"target_temperature": "23.5", "mode": "off", "local_temperature": "22"}),
    ("bath-fan", "Fan", "Bathroom", [POWER, SPEED], {"power": "false", "speed": "3"}),
    ("bath-leak", "Leak at the washing machine", "Bathroom", [sensor("water_leak", "moisture"), BATTERY], {"water_leak": "false", "battery": "42"}),
    ("front-door", "Front door", "Hall", [LOCK, BATTERY], {"lock": "LOCKED", "battery": "70"}),
    ("hall-lamp", "Hall light", "Hall", [POWER], {"power": "false"}),
    ("hall-motion", "Motion", "Hall", [sensor("occupancy"), BATTERY], {"occupancy": "false", "battery": "88"}),
    ("doorbell", "Doorbell", "Hall", ["chime: {type: action, values: [Classic, Gong, Bird], command: {topic: $topic/chime, payload: $value}}"], {}),
    ("hall-sign", "لافتة الباب", "Hall", ["message: {type: text, command: {topic: $topic/message, payload: $value}, state: {topic: $state/message}}"], {"message": "Please ring twice"}),
    ("desk-lamp", "Desk lamp", "Study", [POWER, BRIGHTNESS, WHITE], {"power": "true", "brightness": "65", "color_temp": "200"}),
    ("study-radiator", "Radiator", "Study", [HEAT], {"target_temperature": "20.5", "mode": "heat", "local_temperature": "20.1"}),
    ("printer", "Printer and scanner", "Study", [POWER, WATTS], {"power": "false", "load": "0.4"}),
    ("pump", "Garden pump", "Garden", [FLOW], {"flow": "4.5"}),
    ("sprinkler", "Sprinkler", "Garden", [POWER, TIMER], {"power": "false", "timer": "1440"}),
    ("lantern", "Lantern", "Garden", [POWER, EFFECT], {"power": "true", "effect": "Candle"}),
    ("shed", "Shed", "Garden", [AIR, BATTERY], {"temperature": "9.5", "humidity": "71", "battery": "8"}),
    ("garage", "Garage door", "Garden", [BLIND], {"position": "0"}),
]
CLASSES = {"garage": "garage", "television": "outlet", "coffee": "outlet", "printer": "outlet", "hall-lamp": "lamp", "kitchen-window": "window"}
SCENES = "scenes:\n  evening: {floor-lamp: {brightness: 40}, living-ceiling: {power: false}}\n  good-night: {floor-lamp: {power: false}}\n"
GROUPS = "groups:\n  all-ceilings: {name: All ceilings, members: [living-ceiling, kitchen-ceiling, bedroom-ceiling]}\n"


def files(house, more=""):
    blocks = []
    for device, name, area, properties, _ in house:
        text = ", ".join(properties).replace("$topic", f"cmd/{device}").replace("$state", f"state/{device}")
        kind = f"class: {CLASSES[device]}, " if device in CLASSES else ""
        blocks.append(f"{device}: {{name: {name}, area: {area}, {kind}properties: {{{text}}}}}\n")
    return "".join(blocks) + more


def states(house):
    return {f"{device}/{name}": value for device, _, _, _, values in house for name, value in values.items()}
