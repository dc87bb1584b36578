# Settle
# SPDX-License-Identifier: Apache-2.0
"""MQTT 3.1.1 with quality of service 1 in both directions."""

import socket
import struct
import threading


def text(value):
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def packet(kind, body):
    size, rest = b"", len(body)
    while True:
        rest, low = rest >> 7, rest & 0x7F
        size += bytes([low | (0x80 if rest else 0)])
        if not rest:
            return bytes([kind]) + size + body


class Client:
    """A connection that is read on a thread of its own.

    `hear(topic, payload)` gets what arrives, `acknowledged(identifier)` each identifier that
    `publish` returned, once the broker has it. What `hear` publishes leaves with the acknowledgements
    of all that was read with it.
    """

    def __init__(self, port, name, hear=None, filters=(), acknowledged=None):
        self.hear, self.acknowledged = hear, acknowledged
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lock, self.buffer, self.identifier = threading.Lock(), b"", 0
        self.answered, self.problem, self.closing = threading.Event(), None, False
        self.send(packet(0x10, text("MQTT") + bytes([4, 2, 0, 0]) + text(name)))
        if self.read_packet()[1][1]:
            raise ConnectionError("the broker refuses the connection")
        if filters:
            self.send(packet(0x82, b"\0\1" + b"".join(text(filter_) + b"\1" for filter_ in filters)))
            self.read_packet()
        self.socket.settimeout(None)
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def send(self, data):
        with self.lock:
            self.socket.sendall(data)

    def publish(self, topic, payload):
        """Publishes with quality of service 1; its identifier."""
        with self.lock:
            self.identifier = self.identifier % 0xFFFF + 1
            identifier = self.identifier
            self.socket.sendall(packet(0x32, text(topic) + struct.pack(">H", identifier) + payload))
        return identifier

    def flush(self, timeout=30):
        """Waits until the broker has handled all that was sent, and what it sent before is heard."""
        self.answered.clear()
        self.send(b"\xC0\0")
        if not self.answered.wait(timeout):
            raise TimeoutError("the broker does not answer")

    def read_packet(self):
        while True:
            found = self.split(0)
            if found:
                kind, start, end = found
                body, self.buffer = self.buffer[start:end], self.buffer[end:]
                return kind, body
            part = self.socket.recv(1 << 16)
            if not part:
                raise ConnectionError("the broker closed the connection")
            self.buffer += part

    def split(self, place):
        """The kind, the start and the end of the body of the packet at a place; `None` if it is not whole."""
        buffer, size, shift, at = self.buffer, 0, 0, place + 1
        while at < len(buffer):
            byte = buffer[at]
            at += 1
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (buffer[place], at, at + size) if at + size <= len(buffer) else None
            shift += 7
        return None

    def listen(self):
        try:
            while True:
                place, answers = 0, []
                while found := self.split(place):
                    kind, start, place = found
                    if kind & 0xF0 == 0x30:
                        self.handle(kind, start, place, answers)
                    elif kind == 0x40 and self.acknowledged:
                        self.acknowledged(int.from_bytes(self.buffer[start:start + 2], "big"))
                    elif kind == 0xD0:
                        self.answered.set()
                self.buffer = self.buffer[place:]
                if answers:
                    self.send(b"".join(answers))
                part = self.socket.recv(1 << 18)
                if not part:
                    raise ConnectionError("the broker closed the connection")
                self.buffer += part
        except Exception as problem:  # Whoever looks at the results must learn of it.
            if not self.closing:
                self.problem = problem

    def handle(self, kind, start, end, answers):
        size = int.from_bytes(self.buffer[start:start + 2], "big")
        after = start + 2 + size
        topic = self.buffer[start + 2:after]
        if kind & 6:
            answers.append(b"\x40\2" + self.buffer[after:after + 2])
            after += 2
        answer = self.hear(topic, self.buffer[after:end])
        if answer:
            answers.append(answer)

    def close(self):
        self.closing = True
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(timeout=5)
        self.socket.close()
