# Settle
# SPDX-License-Identifier: Apache-2.0
"""A broker whose acknowledgements are late, overtake each other, or are lost with the connection.

It has what the gateway uses of MQTT 5: quality of service 0 and 1, retained messages, sessions that
outlive a connection, no-local, retain handling, retain as published, and wills. The devices live in
the same process: `hear` is called for each message of the gateway, and `route` is how they report.
"""

import asyncio
import contextlib
from collections import deque

import packets

NO_LOCAL, AS_PUBLISHED, RETAIN_HANDLING = 4, 8, 0x30


def matches(filter_, topic):
    levels, parts = filter_.split("/"), topic.split("/")
    for place, level in enumerate(levels):
        if level == "#":
            return True
        if place >= len(parts) or level not in ("+", parts[place]):
            return False
    return len(levels) == len(parts)


class Session:
    """What the broker keeps of a client, connected or not."""

    def __init__(self, name):
        self.name, self.filters, self.connection, self.expiry_timer = name, {}, None, None
        #: What waits for room in the window, and identifier -> what is not acknowledged, oldest first.
        self.waiting, self.unacknowledged, self.identifier = deque(), {}, 0

    def options(self, topic):
        """The options of the subscription of highest quality that matches; `None` without one."""
        found = [options for filter_, options in self.filters.items() if matches(filter_, topic)]
        return max(found, key=lambda options: options & 3, default=None)

    def deliver(self, topic, payload, qos, is_retained, properties):
        if qos == 0:
            if self.connection:
                self.connection.send(packets.publish(topic, payload, 0, 0, is_retained, False, properties))
            return
        self.waiting.append((topic, payload, is_retained, properties))
        self.advance()

    def advance(self):
        while self.connection and self.waiting and len(self.unacknowledged) < self.connection.window:
            message = self.waiting.popleft()
            self.identifier = self.identifier % 0xFFFF + 1
            while self.identifier in self.unacknowledged:
                self.identifier = self.identifier % 0xFFFF + 1
            self.unacknowledged[self.identifier] = message
            topic, payload, is_retained, properties = message
            self.connection.send(
                packets.publish(topic, payload, 1, self.identifier, is_retained, False, properties))

    def resume(self, repeated):
        for identifier, (topic, payload, is_retained, properties) in self.unacknowledged.items():
            repeated(topic, payload)
            self.connection.send(packets.publish(topic, payload, 1, identifier, is_retained, True, properties))
        self.advance()

    def topics(self):
        """The topics of all messages that the client has not acknowledged."""
        yield from (message[0] for message in self.unacknowledged.values())
        yield from (message[0] for message in self.waiting)


class Connection:
    """One client's connection."""

    def __init__(self, broker, reader, writer):
        self.broker, self.reader, self.writer = broker, reader, writer
        self.session, self.will, self.window, self.is_swallowing = None, None, 1, False
        #: Topic -> when its newest acknowledgement leaves; identifiers -> topics not acknowledged yet.
        self.promised, self.owed = {}, {}

    def send(self, data):
        if not self.writer.is_closing():
            self.writer.write(data)

    async def read_packet(self):
        first = (await self.reader.readexactly(1))[0]
        size = shift = 0
        while True:
            byte = (await self.reader.readexactly(1))[0]
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                return first >> 4, first & 15, await self.reader.readexactly(size)
            shift += 7

    async def serve(self):
        try:
            kind, _, body = await self.read_packet()
            if kind != packets.CONNECT:
                return
            self.begin(packets.Connect(body))
            while True:
                kind, flags, body = await self.read_packet()
                if kind == packets.DISCONNECT:
                    if not body or body[0] == 0:
                        self.will = None
                    return
                self.handle(kind, flags, body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.end()

    def begin(self, connect):
        self.will, self.window = connect.will, connect.window
        self.session, is_present = self.broker.open_session(connect, self)
        self.send(packets.connack(is_present))
        self.session.resume(self.broker.repeated)

    def handle(self, kind, flags, body):
        if kind == packets.PUBLISH:
            self.receive(packets.Publish(flags, body))
        elif kind == packets.PUBACK:
            self.session.unacknowledged.pop(int.from_bytes(body[:2], "big"), None)
            self.session.advance()
        elif kind == packets.SUBSCRIBE:
            identifier, wanted = packets.subscriptions(body)
            self.send(packets.answer(packets.SUBACK, identifier, bytes(min(o & 3, 1) for _, o in wanted)))
            for filter_, options in wanted:
                self.subscribe(filter_, options)
        elif kind == packets.UNSUBSCRIBE:
            identifier, filters = packets.unsubscriptions(body)
            for filter_ in filters:
                self.session.filters.pop(filter_, None)
            self.send(packets.answer(packets.UNSUBACK, identifier, bytes(len(filters))))
        elif kind == packets.PINGREQ:
            self.send(packets.packet(packets.PINGRESP, 0, b""))
        else:
            raise ConnectionError(f"a packet of type {kind}")

    def subscribe(self, filter_, options):
        handling, is_new = (options & RETAIN_HANDLING) >> 4, filter_ not in self.session.filters
        self.session.filters[filter_] = options
        if handling == 0 or (handling == 1 and is_new):
            for topic, (payload, qos, properties) in list(self.broker.retained.items()):
                if matches(filter_, topic):
                    self.session.deliver(topic, payload, min(qos, options & 3, 1), True, properties)

    def receive(self, message):
        self.broker.seen(message.topic, message.payload, not self.is_swallowing)
        if self.is_swallowing:
            return
        if message.qos:
            now = self.broker.loop.time()
            delay = self.broker.acknowledgement_delay(message.topic)
            # Acknowledgements of one topic keep their order; those of others may overtake them.
            at = self.promised[message.topic] = max(now + delay, self.promised.get(message.topic, 0))
            self.owed[message.identifier] = message.topic
            self.broker.loop.call_at(at, self.acknowledge, message.identifier)
        self.broker.route(message.topic, message.payload, message.qos, message.is_retained, self.session, message.properties)
        self.broker.hear(message.topic, message.payload)

    def acknowledge(self, identifier):
        self.owed.pop(identifier, None)
        self.send(packets.answer(packets.PUBACK, identifier))

    def end(self):
        self.writer.transport.abort()
        session, self.session = self.session, None
        if session and session.connection is self:
            session.connection = None
            self.broker.close_session(session, self.will)


class Broker:
    """Serves on a port of this machine. The functions that it is given:

    `hear(topic, payload)`: a message of the gateway has arrived; `seen(topic, payload, is_kept)`: one was
    read, and is lost with the connection unless kept; `repeated(topic, payload)`: a message is
    delivered once more; `acknowledgement_delay(topic)`: seconds.
    """

    def __init__(self, hear, seen, repeated, acknowledgement_delay):
        self.hear, self.seen, self.repeated, self.acknowledgement_delay = hear, seen, repeated, acknowledgement_delay
        self.sessions, self.retained, self.connections = {}, {}, 0
        self.loop, self.server, self.tasks = asyncio.get_running_loop(), None, set()

    async def start(self, port):
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", port, reuse_address=True)

    async def accept(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        with contextlib.suppress(asyncio.CancelledError):
            await Connection(self, reader, writer).serve()
        self.tasks.discard(task)

    async def close(self):
        if self.server:
            self.server.close()
        self.cut()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def open_session(self, connect, connection):
        session = self.sessions.get(connect.name)
        if session and session.connection:
            old, session.connection = session.connection, None
            old.writer.transport.abort()
        is_present = session is not None and not connect.is_clean
        if not is_present:
            session = self.sessions[connect.name] = Session(connect.name)
        if session.expiry_timer:
            session.expiry_timer.cancel()
        session.connection, session.expiry = connection, connect.expiry
        self.connections += 1
        return session, is_present

    def close_session(self, session, will):
        if will:
            self.route(will[0], will[1], 1, will[2])
        session.expiry_timer = self.loop.call_later(session.expiry, self.forget, session)

    def forget(self, session):
        if session.connection is None and self.sessions.get(session.name) is session:
            del self.sessions[session.name]

    def route(self, topic, payload, qos=1, is_retained=False, sender=None, properties=b""):
        """Publishes a message to all sessions."""
        if is_retained:
            if payload:
                self.retained[topic] = payload, qos, properties
            else:
                self.retained.pop(topic, None)
        for session in list(self.sessions.values()):
            options = session.options(topic)
            if options is None or (session is sender and options & NO_LOCAL):
                continue
            session.deliver(topic, payload, min(qos, options & 3, 1), is_retained and bool(options & AS_PUBLISHED), properties)

    @property
    def connected(self):
        """The sessions with a connection."""
        return [session for session in self.sessions.values() if session.connection]

    @property
    def is_swallowing(self):
        """Whether what a client sends is lost, so that it waits for acknowledgements in vain."""
        return any(session.connection.is_swallowing for session in self.connected)

    def owes(self, topics):
        """Whether something with one of these topics is not acknowledged, in either direction."""
        return any(
            topic in topics
            for session in self.sessions.values()
            for topic in [*session.topics(), *(session.connection.owed.values() if session.connection else ())]
        )

    def swallow(self):
        """From now on what clients send is lost, until their connections are cut."""
        for session in self.connected:
            session.connection.is_swallowing = True

    def cut(self):
        """Ends every connection; acknowledgements on their way are lost."""
        for session in self.connected:
            session.connection.end()
