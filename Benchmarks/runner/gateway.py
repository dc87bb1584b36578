# Settle
# SPDX-License-Identifier: Apache-2.0
"""`settled` with a generated configuration."""

import datetime
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

from . import programs

# A separate key that is sent at once, which proves that all earlier messages were handled.
END = "settle/end/level/set"
DONE = "cmd/end"
END_DEVICE = (
    "end: {properties: {level: {type: number, policy: {delay: 0, max_wait: none},"
    f" command: {{topic: {DONE}, payload: $value}}}}}}}}\n"
)


def devices(count, delay="300ms", max_wait="2s"):
    """Lines of a device file: dev0/level to devN/level, commands on cmd/0 to cmd/N."""
    return [
        f"dev{number}: {{properties: {{level: {{type: number, range: [0, 10000000], step: 1,"
        f" policy: {{delay: {delay}, max_wait: {max_wait}}},"
        f" command: {{topic: cmd/{number}, payload: $value}}}}}}}}\n"
        for number in range(count)
    ]


def lamps(count):
    """Lines of a device file: so many lamps with three properties each, as in homes."""
    return [
        f"lamp{number}:\n  name: Lamp {number}\n  properties:\n"
        f"    power: {{type: boolean,"
        f" command: {{topic: lamp/{number}/set, payload: {{state: $value}}}},"
        f" state: {{topic: lamp/{number}, value: /state}}}}\n"
        f"    brightness: {{type: integer, range: [0, 254],"
        f" command: {{topic: lamp/{number}/set, payload: {{brightness: $value}}}},"
        f" state: {{topic: lamp/{number}, value: /brightness}}}}\n"
        f"    color_temp: {{type: integer, range: [150, 500], unit: mired,"
        f" command: {{topic: lamp/{number}/set, payload: {{color_temp: $value}}}},"
        f" state: {{topic: lamp/{number}, value: /color_temp}}}}\n"
        for number in range(count)
    ]


def fleet(count):
    """Lines of a device file: one template that makes so many devices."""
    return [
        f"fleet-$n:\n  for: [1..{count}]\n  topic: fleet/$n\n  properties:\n",
        "    power: {type: boolean, command: {topic: $topic/set/power},"
        " state: {topic: $topic/power}}\n",
        "    level: {type: integer, range: [0, 100], command: {topic: $topic/set/level},"
        " state: {topic: $topic/level}}\n",
        "    mode: {type: choice, values: [off, eco, full], command: {topic: $topic/set/mode},"
        " state: {topic: $topic/mode}}\n",
        "    target: {type: number, range: [5, 30], step: 0.5,"
        " command: {topic: $topic/set/target}, state: {topic: $topic/target}}\n",
    ]


def report_fleet(port, count):
    """Reports every property of every device of `fleet(count)`, the last one's at the end."""
    values = {"power": "true", "level": "50", "mode": "eco", "target": "20.5"}
    with socket.create_connection(("127.0.0.1", port)) as client:
        # MQTT 3.1.1: CONNECT with a clean session, then messages at quality of service 0.
        client.sendall(bytes([0x10, 14]) + b"\0\4MQTT\4\2\0\0\0\2re")
        client.recv(4)
        packets = bytearray()
        for number in range(1, count + 1):
            for name, value in values.items():
                topic = f"fleet/{number}/{name}".encode()
                body = len(topic).to_bytes(2, "big") + topic + value.encode()
                packets += bytes([0x30, len(body)]) + body
        client.sendall(packets)
        client.sendall(bytes([0xE0, 0]))


class Gateway:
    """A context manager."""

    def __init__(
        self,
        port=None,
        devices=(),
        settings="",
        prefix=(),
        environment=None,
        waits=True,
    ):
        """With `waits` off, call `await_ready` before anything else."""
        self.folder = programs.folder()
        self.socket = f"{self.folder}/s"
        self.port = port
        os.mkdir(f"{self.folder}/devices")
        lines = list(devices)
        # The limit of a file is eight megabytes.
        for number, first in enumerate(range(0, max(len(lines), 1), 10_000)):
            path = f"{self.folder}/devices/devices{number:03}.yaml"
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(lines[first : first + 10_000])
        url = f"mqtt://127.0.0.1:{port}" if port else f"unix:{self.folder}/no.broker"
        with open(f"{self.folder}/settle.yaml", "w", encoding="utf-8") as file:
            file.write(f"mqtt: {{url: '{url}', keepalive: 0}}\nsocket: {self.socket}\n")
            file.write(f"devices: devices\n{settings}")
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(f"{self.folder}/notify")
        self.notices.settimeout(1)
        self.log = open(f"{self.folder}/log", "w+b")  # pylint: disable=consider-using-with
        program = programs.installed(programs.SETTLED)
        self.begin = time.monotonic()
        variables = dict(os.environ, NOTIFY_SOCKET=f"{self.folder}/notify", **(environment or {}))
        command = [*prefix, program, "run", "--config", f"{self.folder}/settle.yaml"]
        self.process = programs.start(command, stderr=self.log, env=variables)
        if waits:
            self.await_ready()

    def await_ready(self):
        while True:
            try:
                if b"READY=1" in self.notices.recv(4096):
                    break
            except TimeoutError:
                if self.process.poll() is not None or time.monotonic() - self.begin > 300:
                    sys.exit(f"bench: the gateway does not start:\n{self.text()}")
        self.seconds_to_ready = time.monotonic() - self.begin
        self.notices.close()

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        programs.end(self.process)
        self.log.close()
        programs.forget(self.folder)

    def connected(self):
        """Waits until the broker has the gateway's subscriptions."""
        command = ["mosquitto_sub", "-p", str(self.port), "-t", "settle/status", "-C", "1"]
        subprocess.run(command + ["-W", "120"], check=True, stdout=subprocess.DEVNULL)
        return self

    def text(self):
        """The log so far."""
        with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as file:
            return file.read()

    def terminate(self, patience=300):
        """Ends it politely.

        Returns seconds until it was gone, CPU nanoseconds of its whole life, and what it logged.
        """
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        spent = programs.wait(self.process, patience)
        return time.monotonic() - begin, spent, self.text()

    def shows(self, key, value, patience=120):
        """Waits until the device of a key has reported a value."""
        begin = time.monotonic()
        wanted = f'"actual":{value}'.encode()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.socket)
            replies = client.makefile("rb")
            while time.monotonic() - begin < patience:
                client.sendall(f'{{"get":"{key}"}}\n'.encode())
                if wanted in replies.readline():
                    return
                time.sleep(0.05)
        sys.exit(f"bench: {key} does not become {value}")

    def change(self, lines, count):
        """Sends changes down the control socket in one go and reads all replies."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.socket)
            pump(client, lines, count)


def pump(client, lines, replies):
    """Writes `lines` and reads as many replies, both as fast as the other side accepts them."""
    client.setblocking(False)
    view = memoryview(lines)
    while replies > 0:
        readable, writable, _ = select.select([client], [client] if view else [], [], 60)
        if not readable and not writable:
            sys.exit("bench: the gateway owes replies")
        if writable:
            view = view[client.send(view[: 1 << 18]) :]
        if readable:
            chunk = client.recv(1 << 20)
            if not chunk:
                sys.exit("bench: the gateway closed the connection")
            if b'"phase":"rejected"' in chunk:
                sys.exit("bench: the gateway refused a change")
            replies -= chunk.count(b"\n")


def sent_of(log):
    """The number of sent values in the final report."""
    found = re.search(r"(\d+) sent", log)
    return int(found.group(1)) if found else 0


def time_of(log, text):
    """When a line with this text was written, in seconds since 1970."""
    found = re.search(rf"^(\S+)Z \w+ {re.escape(text)}", log, re.MULTILINE)
    if not found:
        sys.exit(f"bench: no line says {text!r}:\n{log[-2000:]}")
    moment = datetime.datetime.fromisoformat(found.group(1)).replace(tzinfo=datetime.timezone.utc)
    return moment.timestamp()
