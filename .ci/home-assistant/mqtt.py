# Settle
# SPDX-License-Identifier: Apache-2.0

"""An MQTT 3.1.1 client with QoS 0, for devices that are played and messages that are watched."""

import socket
import struct
import threading
import time


def _text(text):
    data = text.encode()
    return struct.pack("!H", len(data)) + data


def _packet(kind, body):
    size, length = len(body), b""
    while True:
        size, digit = divmod(size, 128)
        length += bytes([digit | (128 if size else 0)])
        if not size:
            return bytes([kind]) + length + body


class Client:
    """Keeps every message that comes, and hands each to `handler` on a thread of its own."""

    def __init__(self, port, name, filters=("#",), handler=None):
        self.messages = []
        self._changed = threading.Condition()
        self._handler = handler
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._sending = threading.Lock()
        # No keep-alive: the broker waits for ever.
        self._send(0x10, _text("MQTT") + bytes([4, 2, 0, 0]) + _text(name))
        self._expect(0x20)
        self._send(0x82, b"\0\1" + b"".join(_text(f) + b"\0" for f in filters))
        self._socket.settimeout(None)
        threading.Thread(target=self._read, daemon=True).start()

    def publish(self, topic, payload, retain=False):
        data = payload if isinstance(payload, bytes) else str(payload).encode()
        self._send(0x31 if retain else 0x30, _text(topic) + data)

    def wait(self, condition, seconds=10):
        """Whether `condition(messages)` holds within this time."""
        end = time.monotonic() + seconds
        with self._changed:
            while not condition(self.messages):
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def payloads(self, topic, since=0):
        """What came on `topic`, after the first `since` messages."""
        with self._changed:
            return [p for t, p, _ in self.messages[since:] if t == topic]

    @property
    def count(self):
        with self._changed:
            return len(self.messages)

    def _send(self, kind, body):
        with self._sending:
            self._socket.sendall(_packet(kind, body))

    def _bytes(self, count):
        data = b""
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def _next(self):
        kind = self._bytes(1)[0]
        size = shift = 0
        while True:
            digit = self._bytes(1)[0]
            size |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                return kind, self._bytes(size)

    def _expect(self, expected):
        kind, body = self._next()
        if kind != expected or body[1] != 0:
            raise ConnectionError(f"the broker answered {kind:#x} {body!r}")

    def _read(self):
        try:
            while True:
                kind, body = self._next()
                if kind >> 4 != 3:
                    continue
                end = 2 + struct.unpack("!H", body[:2])[0]
                message = (body[2:end].decode(), body[end:].decode(errors="replace"), bool(kind & 1))
                with self._changed:
                    self.messages.append(message)
                    self._changed.notify_all()
                if self._handler:
                    self._handler(*message)
        except (EOFError, OSError):
            return
