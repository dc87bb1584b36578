# Settle
# SPDX-License-Identifier: Apache-2.0
"""The devices of the test: which keys there are, and in which partition each is."""

DEVICES = 1000  # of two properties each; the second half reports what it received
MQTT_DEVICES = 50
PARTITIONS = 64
PROPERTIES = ("level", "tint")


def partition(device, count=PARTITIONS):
    """FNV-1a with 64 bits, modulo the number of partitions."""
    value = 0xCBF29CE484222325
    for byte in device.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value % count


def probe_devices(count=PARTITIONS):
    """The numbers `n` for which the devices `probe-<n>` cover each partition once, by partition."""
    found, number = {}, 0
    while len(found) < count:
        number += 1
        found.setdefault(partition(f"probe-{number}", count), number)
    return [found[number] for number in range(count)]


def template(name, numbers, topic, has_state, properties=PROPERTIES):
    lines = [f"{name}-$n:", f"  for: [{numbers}]", "  properties:"]
    for property_ in properties:
        state = f", state: {{topic: \"{topic}/$n/{property_}\"}}" if has_state else ""
        lines.append(
            f"    {property_}: {{type: number, range: [0, 1000000000], step: 1, policy: {{delay: 300ms, max_wait: 2s}},"
            f" ttl: 1h, command: {{topic: \"{topic}/$n/{property_}/set\", payload: $value}}{state}}}"
        )
    return "\n".join(lines) + "\n"


def device_files():
    half = DEVICES // 2
    probes = ", ".join(str(number) for number in sorted(probe_devices()))
    return {
        "lamps.yaml": template("lamp", f"1..{half}", "lamps", False),
        "blinds.yaml": template("blind", f"{half + 1}..{DEVICES}", "blinds", True),
        "probes.yaml": template("probe", probes, "probes", False, ("level",)),
        "knobs.yaml": template("knob", f"1..{MQTT_DEVICES}", "knobs", False, ("level",)),
    }


class House:
    """The keys of the test in a ledger, and the devices that receive their commands."""

    FILTERS = ("lamps/+/+/set", "blinds/+/+/set", "probes/+/+/set", "knobs/+/+/set")

    def __init__(self, ledger):
        self.ledger, self.numbers = ledger, {}
        half = DEVICES // 2
        self.load = [
            self.add(name, n, property_, "socket")
            for name, first, last in (("lamp", 1, half), ("blind", half + 1, DEVICES))
            for n in range(first, last + 1) for property_ in PROPERTIES
        ]
        # By partition.
        self.probes = [self.add("probe", n, "level", "probe") for n in probe_devices()]
        self.knobs = [self.add("knob", n, "level", "mqtt") for n in range(1, MQTT_DEVICES + 1)]

    def add(self, name, n, property_, kind):
        number = self.ledger.add(f"{name}-{n}/{property_}", kind)
        topic = f"{name}s/{n}/{property_}".encode()
        self.numbers[topic + b"/set"] = number, self.report(topic) if name == "blind" else None
        return number

    @staticmethod
    def report(topic):
        """What stands before the payload in a device's report, without the packet's size."""
        return len(topic).to_bytes(2, "big") + topic

    def hear(self, topic, payload):
        """Receives a command; the packet with the device's report, if it has a state topic."""
        found = self.numbers.get(topic)
        try:
            value = int(float(payload))
        except ValueError:
            found = None
        if not found:
            self.ledger.strangers.append(f"{topic!r}: {payload[:40]!r}")
            return None
        number, report = found
        self.ledger.delivers(number, value)
        # Shorter than 128 bytes: one byte for the size.
        return report and bytes([0x30, len(report) + len(payload)]) + report + payload
