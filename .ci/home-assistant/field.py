# Settle
# SPDX-License-Identifier: Apache-2.0

"""What Zigbee2MQTT 2.12 announces of 190 models, of groups, scenes and its bridge."""

import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIXTURES = f"{ROOT}/Tests/ImportTests/Fixtures"
#: The base topic in the fixtures.
BASE = "zigbee2mqtt"
#: What is known of all announcements and counts here; a class would need its unit.
KEPT = ("name", "entity_category", "effect_list", "supported_color_modes", "event_types", "modes",
        "fan_modes", "preset_modes", "available_tones")
#: What platforms do not do without.
NEEDED = {"select": {"options": ["a", "b"]}, "light": {"schema": "json", "effect": True}}


def encoded(base):
    """A base topic as it is in the identifiers of groups."""
    return "".join(str(ord(character)) for character in base)


def devices():
    """The payload of `bridge/devices`."""
    with open(f"{FIXTURES}/zigbee2mqtt-models.json") as file:
        return json.load(file)


def announcements(base, prefix, is_old=False):
    """Topics and payloads with this base topic, below this discovery topic; also for an old core.

    Fifty-six are as Zigbee2MQTT's own code makes them. Of the others the fixtures have the facts that
    matter to Home Assistant's entities; identifiers, topics and availability are completed.
    """
    found = {}
    with open(f"{FIXTURES}/zigbee2mqtt-discovery.txt") as file:
        for line in file:
            topic, payload = line.split(" ", 1)
            found[topic] = json.loads(payload)
    names = {device["ieee_address"]: device["friendly_name"] for device in devices()}
    with open(f"{FIXTURES}/zigbee2mqtt-entities.txt") as file:
        for line in file:
            address, platform, part, facts = line.split(" ", 3)
            topic = f"homeassistant/{platform}/{address}/{part}/config"
            if topic not in found:
                found[topic] = _completed(address, platform, part, json.loads(facts), names[address])
    for topic, payload in found.items():
        # What Home Assistant before 2025.8 refuses, and before 2024.8.
        if payload.get("device_class") == "temperature_delta":
            del payload["device_class"]
        if is_old:
            payload["device"].pop("model_id", None)
            if "supported_color_modes" in payload:
                payload["color_mode"] = True
        text = _moved(json.dumps(payload, ensure_ascii=False), base)
        yield prefix + _moved(topic, base).removeprefix("homeassistant"), json.loads(text)


def _completed(address, platform, part, facts, name):
    topic = f"{BASE}/{name}"
    slug = re.sub(r"\W+", "_", f"{name}_{part}".lower())
    return {
        **{key: facts[key] for key in KEPT if key in facts}, **NEEDED.get(platform, {}),
        **{f"{sets}_command_topic": f"{topic}/set/{sets}" for sets in facts.get("sets", [])},
        "availability": [{"topic": source, "value_template": "{{ value_json.state }}"}
                         for source in (f"{BASE}/bridge/state", f"{topic}/availability")],
        "availability_mode": "all", "command_topic": f"{topic}/set", "state_topic": topic,
        "device": {"identifiers": [f"zigbee2mqtt_{address}"], "name": name},
        "object_id": slug, "default_entity_id": f"{platform}.{slug}",
        "origin": {"name": "Zigbee2MQTT", "sw": "2.12.1"}, "unique_id": f"{address}_{part}_{BASE}",
    }


def _moved(text, base):
    """A text of Zigbee2MQTT as it is with another base topic."""
    for old, new in ((f"{BASE}/", f"{base}/"), (f'_{BASE}"', f'_{base}"'),
                     (f"/{encoded(BASE)}_", f"/{encoded(base)}_"),
                     (f"zigbee2mqtt_{encoded(BASE)}_", f"zigbee2mqtt_{encoded(base)}_")):
        text = text.replace(old, new)
    return text
