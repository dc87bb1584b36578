# Settle
# SPDX-License-Identifier: Apache-2.0
"""The part of the NATS protocol and of JetStream's API that the test needs."""

import base64
import json
import random
import socket
import time
import uuid


class NoAnswer(Exception):
    """Nobody answered in time, or no server can be reached."""


class Refused(Exception):
    """JetStream's answer is an error."""

    def __init__(self, error):
        super().__init__(f"{error.get('description')} ({error.get('err_code')})")
        self.code = error.get("err_code")


class Message:
    def __init__(self, subject, reply, headers, data):
        self.subject, self.reply, self.headers, self.data = subject, reply, headers, data


class Client:
    """One connection to the first of several servers that answers; not safe for several threads."""

    def __init__(self, ports):
        self.ports, self.socket = list(ports), None
        self.inbox = f"_INBOX.{uuid.uuid4().hex}"
        self.count = 0

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def connect(self):
        for port in random.sample(self.ports, len(self.ports)):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=2)
                self.buffer = b""
                self.line(time.monotonic() + 2)  # INFO
                options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "lang": "python", "version": "0"}
                self.send(f"CONNECT {json.dumps(options)}\r\nPING\r\nSUB {self.inbox}.* 1\r\n".encode())
                while self.line(time.monotonic() + 2) != b"PONG":
                    pass
                return
            except (OSError, NoAnswer):
                self.close()
        raise NoAnswer("no server can be reached")

    def send(self, data):
        self.socket.settimeout(2)
        self.socket.sendall(data)

    def fill(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise NoAnswer("no answer in time")
        self.socket.settimeout(left)
        try:
            part = self.socket.recv(1 << 18)
        except TimeoutError:
            raise NoAnswer("no answer in time") from None
        if not part:
            raise OSError("the server closed the connection")
        self.buffer += part

    def line(self, deadline):
        while b"\r\n" not in self.buffer:
            self.fill(deadline)
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def next(self, deadline):
        """The next message."""
        while True:
            line = self.line(deadline)
            words = line.decode().split(" ")
            if words[0] == "PING":
                self.send(b"PONG\r\n")
            elif words[0] in ("MSG", "HMSG"):
                total = int(words[-1])
                head = int(words[-2]) if words[0] == "HMSG" else 0
                names = words[1:-2] if words[0] == "HMSG" else words[1:-1]
                while len(self.buffer) < total + 2:
                    self.fill(deadline)
                data, self.buffer = self.buffer[:total], self.buffer[total + 2:]
                return Message(names[0], names[2] if len(names) > 2 else None, data[:head], data[head:])
            elif words[0] == "-ERR":
                raise OSError(line.decode())

    def publish(self, subject, data=b"", reply=""):
        self.send(f"PUB {subject} {reply + ' ' if reply else ''}{len(data)}\r\n".encode() + data + b"\r\n")

    def request(self, subject, data=b"", timeout=2.0):
        """The answer to one request; connects if there is no connection."""
        try:
            if not self.socket:
                self.connect()
            self.count += 1
            reply = f"{self.inbox}.{self.count}"
            self.publish(subject, data, reply)
            deadline = time.monotonic() + timeout
            while True:
                message = self.next(deadline)
                if message.subject == reply:
                    if b" 503" in message.headers[:12]:
                        raise NoAnswer(f"nobody answers for {subject}")
                    return message
        except (OSError, NoAnswer) as problem:
            self.close()  # It may be paused: the next request tries another one.
            raise NoAnswer(str(problem)) from None

    # JetStream.

    def call(self, name, body=None, timeout=2.0):
        answer = json.loads(self.request(f"$JS.API.{name}", json.dumps(body or {}).encode(), timeout).data)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def store(self, subject, data, timeout=2.0):
        """Appends a message to the stream of its subject."""
        answer = json.loads(self.request(subject, data, timeout).data)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def last(self, stream, subject):
        """The last message of a subject; `None` without one."""
        try:
            message = self.call(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject})["message"]
        except Refused as problem:
            if problem.code == 10037:
                return None
            raise
        return base64.b64decode(message.get("data", ""))

    def read(self, stream, first, timeout=5.0):
        """Yields (sequence, subject, data) of what a stream has from a sequence on."""
        if not self.socket:
            self.connect()
        self.count += 1
        target = f"{self.inbox}read.{self.count}"
        name = f"read{uuid.uuid4().hex[:12]}"
        configuration = {
            "name": name, "deliver_subject": target, "deliver_policy": "by_start_sequence", "opt_start_seq": max(first, 1),
            "ack_policy": "none", "replay_policy": "instant", "mem_storage": True, "num_replicas": 1,
            "inactive_threshold": 10_000_000_000,
        }
        # The first messages may come before the answer.
        self.count += 1
        sid, reply = self.count, f"{self.inbox}.{self.count}"
        body = json.dumps({"stream_name": stream, "config": configuration}).encode()
        try:
            # Across routes, 2.9 delivers to this very subject only, not to a pattern.
            self.send(f"SUB {target} {sid}\r\n".encode())
            self.publish(f"$JS.API.CONSUMER.CREATE.{stream}.{name}", body, reply)
            seen = 0
            while True:
                message = self.next(time.monotonic() + timeout)
                if message.subject == reply:
                    if b" 503" in message.headers[:12]:
                        raise NoAnswer("nobody answers for JetStream")
                    answer = json.loads(message.data)
                    if "error" in answer:
                        raise Refused(answer["error"])
                    if answer["num_pending"] == 0 and answer.get("delivered", {}).get("consumer_seq", 0) == 0:
                        break
                    continue
                parts = (message.reply or "").split(".")
                if len(parts) < 9 or parts[3] != name:
                    continue
                seen += 1
                if int(parts[6]) != seen:
                    raise NoAnswer("a message is missing")
                yield int(parts[5]), message.subject, message.data
                if int(parts[8]) == 0:
                    break
            self.send(f"UNSUB {sid}\r\n".encode())
            self.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{name}")
        except (OSError, NoAnswer) as problem:
            self.close()
            raise NoAnswer(str(problem)) from None
