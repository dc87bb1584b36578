# Settle
# SPDX-License-Identifier: Apache-2.0
"""The packets of MQTT 5 that a broker and one gateway exchange, at quality of service 0 and 1."""

import struct

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK = 1, 2, 3, 4, 8, 9
UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT = 10, 11, 12, 13, 14
SESSION_EXPIRY, RECEIVE_MAXIMUM = 0x11, 0x21
#: The size of each kind of property: bytes of a number, or "text", "pair", "length".
SIZES = {
    0x01: 1, 0x02: 4, 0x03: "text", 0x08: "text", 0x09: "text", 0x0B: "length", 0x11: 4, 0x12: "text", 0x13: 2,
    0x15: "text", 0x16: "text", 0x17: 1, 0x18: 4, 0x19: 1, 0x1A: "text", 0x1C: "text", 0x1F: "text", 0x21: 2,
    0x22: 2, 0x23: 2, 0x24: 1, 0x25: 1, 0x26: "pair", 0x27: 4, 0x28: 1, 0x29: 1, 0x2A: 1,
}


class Reader:
    """Reads the body of a packet from its start to its end."""

    def __init__(self, data):
        self.data, self.place = data, 0

    def take(self, count):
        part = self.data[self.place:self.place + count]
        if len(part) != count:
            raise ValueError("a packet ends too early")
        self.place += count
        return part

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def binary(self):
        return self.take(self.number(2))

    def text(self):
        return self.binary().decode()

    def length(self):
        """A number of variable length."""
        result = shift = 0
        while True:
            byte = self.number(1)
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7

    def properties(self):
        """The numbers among the properties, by identifier, and the bytes of all."""
        size = self.length()
        start, found = self.place, {}
        while self.place < start + size:
            identifier = self.length()
            kind = SIZES[identifier]
            if kind == "length":
                found[identifier] = self.length()
            elif kind == "text":
                self.binary()
            elif kind == "pair":
                self.binary()
                self.binary()
            else:
                found[identifier] = self.number(kind)
        return found, self.data[start:start + size]

    def rest(self):
        return self.take(len(self.data) - self.place)

    @property
    def is_at_end(self):
        return self.place >= len(self.data)


def length(number):
    result = b""
    while True:
        number, low = number >> 7, number & 0x7F
        result += bytes([low | (0x80 if number else 0)])
        if not number:
            return result


def text(value):
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def packet(kind, flags, body):
    return bytes([kind << 4 | flags]) + length(len(body)) + body


def connack(is_session_present):
    return packet(CONNACK, 0, bytes([int(is_session_present), 0, 0]))


def publish(topic, payload, qos, identifier=0, is_retained=False, is_repeated=False, properties=b""):
    flags = int(is_repeated) << 3 | qos << 1 | int(is_retained)
    head = text(topic) + (struct.pack(">H", identifier) if qos else b"")
    return packet(PUBLISH, flags, head + length(len(properties)) + properties + payload)


def answer(kind, identifier, codes=b""):
    """PUBACK without codes; SUBACK and UNSUBACK with one code for each filter."""
    body = struct.pack(">H", identifier)
    return packet(kind, 0, body if kind == PUBACK else body + b"\0" + codes)


class Connect:
    """What a client says of itself."""

    def __init__(self, body):
        reader = Reader(body)
        if reader.text() != "MQTT" or reader.number(1) != 5:
            raise ValueError("the client does not speak MQTT 5")
        flags = reader.number(1)
        self.is_clean, self.keepalive = bool(flags & 2), reader.number(2)
        properties, _ = reader.properties()
        self.expiry = properties.get(SESSION_EXPIRY, 0)
        self.window = min(properties.get(RECEIVE_MAXIMUM, 65535), 100)
        self.name, self.will = reader.text(), None
        if flags & 4:
            reader.properties()
            topic, payload = reader.text(), reader.binary()
            self.will = topic, payload, bool(flags & 0x20)


class Publish:
    """A message from a client."""

    def __init__(self, flags, body):
        reader = Reader(body)
        self.qos, self.is_retained = flags >> 1 & 3, bool(flags & 1)
        self.topic = reader.text()
        self.identifier = reader.number(2) if self.qos else 0
        _, self.properties = reader.properties()
        self.payload = reader.rest()


def subscriptions(body):
    """The identifier of a SUBSCRIBE, and each filter with its options."""
    reader = Reader(body)
    identifier = reader.number(2)
    reader.properties()
    found = []
    while not reader.is_at_end:
        found.append((reader.text(), reader.number(1)))
    return identifier, found


def unsubscriptions(body):
    reader = Reader(body)
    identifier = reader.number(2)
    reader.properties()
    found = []
    while not reader.is_at_end:
        found.append(reader.text())
    return identifier, found
