# Settle
# SPDX-License-Identifier: Apache-2.0
"""MQTT 3.1.1 at quality of service 0, for the devices of the tests."""

import socket
import struct
import threading


def text(value):
    data = value.encode()
    return struct.pack(">H", len(data)) + data


class Client:
    """A connection whose messages go to `hear(topic, payload)`, on a thread of its own."""

    def __init__(self, port, name, hear, topics):
        self.hear = hear
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lock = threading.Lock()
        self.answered = threading.Event()
        self.send(0x10, text("MQTT") + bytes([4, 2, 0, 0]) + text(name))
        self.packet()
        if topics:
            self.send(0x82, b"\x00\x01" + b"".join(text(topic) + b"\x00" for topic in topics))
            self.packet()
        self.socket.settimeout(None)
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def publish(self, topic, payload, retain=False):
        self.send(0x31 if retain else 0x30, text(topic) + payload.encode())

    def flush(self):
        """Waits until the broker has handled everything that was sent: it answers a ping after that."""
        self.answered.clear()
        self.send(0xC0, b"")
        if not self.answered.wait(timeout=60):
            raise TimeoutError("the broker does not answer")

    def send(self, kind, body):
        size, rest = b"", len(body)
        while True:
            rest, low = divmod(rest, 128) if rest >= 128 else (0, rest)
            size += bytes([low | (0x80 if rest else 0)])
            if not rest:
                break
        with self.lock:
            self.socket.sendall(bytes([kind]) + size + body)

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError
            data += part
        return data

    def packet(self):
        kind = self.read(1)[0]
        size, shift = 0, 0
        while True:
            byte = self.read(1)[0]
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return kind, self.read(size)

    def listen(self):
        try:
            while True:
                kind, body = self.packet()
                if kind == 0xD0:
                    self.answered.set()
                if kind & 0xF0 == 0x30:
                    count = struct.unpack(">H", body[:2])[0]
                    self.hear(body[2:2 + count].decode(), body[2 + count:].decode())
        except (OSError, ConnectionError):
            pass

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        self.thread.join(timeout=5)
