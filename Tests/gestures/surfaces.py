# Settle
# SPDX-License-Identifier: Apache-2.0
"""The ways to the gateway. Each sends the changes of one gesture in their order, and notes the answers.

`send(change)` hands a change over; `finish()` returns once all are answered, or lost.
"""

import asyncio
import contextlib
import json

from intents import ACCEPTED, REFUSED, REJECTED, rejection

#: How long an answer may take while the gateway runs, and after its connection was lost.
PATIENCE, LAST_WORDS = 60, 3


def line_of(change):
    """A change in the grammar of the control socket."""
    if change.verb == "scene":
        line = {"scene": change.target}
    elif change.verb in ("flush", "cancel"):
        return {change.verb: change.target, "id": change.id}
    else:
        verb = {"many": "set", "press": "set"}.get(change.verb, change.verb)
        line = {"key": change.target, verb: True if change.verb == "toggle" else change.argument}
    return line | {"id": change.id} | ({"now": True} if change.is_now else {})


def note(change, answer):
    """Notes an answer in the form of the control socket, and of lines over HTTP."""
    if "group" in answer and answer["key"] not in change.answers:
        return
    if "error" in answer:
        is_stopping = answer["error"].get("code") == "stopping"
        change.answer(None, REFUSED if is_stopping else REJECTED, reason=answer["error"].get("message"))
    elif "flushed" in answer or "cancelled" in answer:
        change.answer(None, ACCEPTED, answer.get("cancelled", answer.get("flushed")))
    elif answer.get("phase") == "accepted":
        change.answer(answer["key"], ACCEPTED, answer["value"], answer["reason"])
    elif answer.get("phase") == "rejected":
        change.answer(answer["key"], rejection(answer.get("reason")), reason=answer.get("reason"))


class ControlSocket:
    name = "socket"

    def __init__(self, world):
        self.world, self.changes, self.task, self.writer = world, {}, None, None
        self.is_lost, self.progress = False, asyncio.Event()

    async def send(self, change):
        if self.is_lost:
            self.close()
        self.changes[change.id] = change
        try:
            if not self.writer:
                reader, self.writer = await asyncio.open_unix_connection(self.world.gateway.socket_path, limit=1 << 26)
                self.task = asyncio.create_task(self.read(reader))
            self.writer.write(json.dumps(line_of(change)).encode() + b"\n")
            await self.writer.drain()
        except OSError:
            change.lose()

    async def read(self, reader):
        with contextlib.suppress(OSError, ValueError):
            while line := await reader.readline():
                answer = json.loads(line)
                change = self.changes.get(answer.get("id"))
                if change:
                    note(change, answer)
                self.progress.set()
        self.is_lost = True
        self.progress.set()

    async def finish(self):
        if self.task:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    while not self.is_lost and not all(change.is_answered for change in self.changes.values()):
                        self.progress.clear()
                        await self.progress.wait()
            self.world.check_answers(self.changes.values(), self.is_lost)
        self.close()

    def close(self):
        """What is not answered yet never will be."""
        if self.task:
            self.task.cancel()
            self.writer.close()
        self.task = self.writer = None
        self.is_lost = False
        for change in self.changes.values():
            change.lose()


class HTTP:
    """One request after the other on one connection."""

    name = "http"

    def __init__(self, world):
        self.world, self.reader, self.writer = world, None, None

    def request(self, change):
        """Method, path and body."""
        device = "/v1/devices/" + change.target
        body = {"id": change.id} | ({"now": True} if change.is_now else {})
        if change.verb in ("set", "press"):
            return "PUT", device, body | {"value": change.argument}
        if change.verb == "many":
            return "PUT", device, body | {"set": change.argument}
        if change.verb == "step":
            return "POST", device + "/step", body | {"step": change.argument}
        if change.verb == "toggle":
            return "POST", f"{device}/toggle?id={change.id}" + ("&now=true" if change.is_now else ""), None
        if change.verb == "scene":
            return "POST", f"/v1/scenes/{change.target}?id={change.id}", None
        return "POST", f"/v1/{change.verb}?key={change.target}", None

    async def send(self, change):
        method, path, body = self.request(change)
        try:
            async with asyncio.timeout(PATIENCE):
                status, text = await self.exchange(method, path, json.dumps(body).encode() if body else b"")
        except (OSError, EOFError, ValueError):
            self.close()
            change.lose()
            return
        document = json.loads(text)
        if status < 300:
            for answer in document.get("events", [document]):
                note(change, answer)
        else:
            is_stopping = document.get("code") == "stopping" or status == 503 and "events" not in document and not self.world.gateway.is_ready
            change.answer(document.get("key"), REFUSED if is_stopping else REJECTED, reason=document.get("detail"))

    async def exchange(self, method, path, body, kind="application/json"):
        if not self.writer:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.world.gateway.http_port)
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nContent-Type: {kind}\r\n\r\n"
        self.writer.write(head.encode() + body)
        first = await self.reader.readline()
        if not first:
            raise ConnectionResetError("the gateway closed the connection")
        status = int(first.split()[1])
        headers = {}
        while (line := await self.reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        if "content-length" in headers:
            text = await self.reader.readexactly(int(headers["content-length"]))
        else:
            text = b""
            while size := int(await self.reader.readline(), 16):
                text += await self.reader.readexactly(size)
                await self.reader.readline()
            await self.reader.readline()
        if headers.get("connection", "").lower() == "close":
            self.close()
        return status, text

    def close(self):
        if self.writer:
            self.writer.close()
            self.writer = None

    async def finish(self):
        self.close()


class Batch(HTTP):
    """All changes of the gesture as lines of one request."""

    name = "batch"

    def __init__(self, world):
        super().__init__(world)
        self.changes = {}

    async def send(self, change):
        self.changes[change.id] = change

    async def finish(self):
        body = b"".join(json.dumps(line_of(change)).encode() + b"\n" for change in self.changes.values())
        try:
            async with asyncio.timeout(PATIENCE):
                status, text = await self.exchange("POST", "/v1/changes", body, "application/x-ndjson")
            if status < 300:
                for line in text.splitlines():
                    answer = json.loads(line)
                    if answer.get("id") in self.changes:
                        note(self.changes[answer["id"]], answer)
            else:
                for change in self.changes.values():
                    change.answer(None, REFUSED if status == 503 else REJECTED, reason=text.decode())
        except (OSError, EOFError, ValueError):
            pass
        for change in self.changes.values():
            change.lose()
        self.close()


class MQTT:
    """Messages on the gateway's topics. Answers are seen on the control socket.

    What must not be repeated, a step or a toggle, is sent with quality of service 0. Only single values
    have an identifier; the answers to others are told apart by their order.
    """

    name = "mqtt"

    def __init__(self, world):
        self.world, self.changes, self.topics, self.first_epoch = world, [], set(), world.epoch()

    @staticmethod
    def has_identifier(change):
        return change.verb in ("set", "press")

    def message(self, change):
        """Topic, payload and quality of service."""
        if change.verb == "scene":
            return f"settle/scene/{change.target}/set", "1", 0
        if change.verb == "many":
            return f"settle/{change.target}/set", json.dumps(change.argument), 0
        if self.has_identifier(change):
            payload = json.dumps({"value": change.argument, "id": change.id})
            return f"settle/{change.target}/set", payload, 1 if change.verb == "set" else 0
        payload = f"{change.argument:+}" if change.verb == "step" else "1"
        return f"settle/{change.target}/{change.verb}", payload, 0

    async def send(self, change):
        topic, payload, qos = self.message(change)
        self.changes.append(change)
        self.topics.add(topic)
        self.world.expect_by_mqtt(change, topic, payload)
        self.world.broker.route(topic, payload.encode(), qos)
        await asyncio.sleep(0)

    async def finish(self):
        """A message that was lost with a connection is never answered."""
        world, epoch = self.world, self.first_epoch
        waited = [change for change in self.changes if change.verb not in ("flush", "cancel")]
        end = world.now() + PATIENCE
        while not all(change.is_answered for change in waited) or world.broker.owes(self.topics):
            if epoch != world.epoch():
                epoch, end = world.epoch(), None
            if end is None and world.gateway.is_ready and world.broker.connected and not world.broker.owes(self.topics):
                end = world.now() + LAST_WORDS
            if end is not None and world.now() > end:
                break
            await asyncio.sleep(0.02)
        world.check_answers(waited, epoch != self.first_epoch)
        if epoch != self.first_epoch:
            # Without an identifier, nobody knows which of them was lost.
            for change in self.changes:
                if not self.has_identifier(change):
                    change.forget_answers()
        for change in self.changes:
            change.lose()
            world.expect_no_more(change)


SURFACES = {surface.name: surface for surface in (ControlSocket, HTTP, Batch, MQTT)}
