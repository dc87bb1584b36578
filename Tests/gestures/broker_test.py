# Settle
# SPDX-License-Identifier: Apache-2.0
"""The broker keeps to the protocol where it does not break the connection on purpose."""

import asyncio
import struct
import unittest

import packets
from broker import AS_PUBLISHED, NO_LOCAL, Broker, matches


class Client:
    """Speaks the packets directly."""

    async def connect(self, port, is_clean=False, expiry=30):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        properties = bytes([packets.SESSION_EXPIRY]) + struct.pack(">I", expiry)
        head = packets.text("MQTT") + bytes([5, 2 if is_clean else 0, 0, 0])
        self.send(packets.packet(packets.CONNECT, 0, head + packets.length(len(properties)) + properties + packets.text("client")))
        _, body = await self.read()
        return body[0]

    def send(self, data):
        self.writer.write(data)

    async def read(self):
        first, size = await self.reader.readexactly(2)
        return first, await self.reader.readexactly(size)

    async def subscribe(self, filter_, options):
        self.send(packets.packet(packets.SUBSCRIBE, 2, b"\0\1\0" + packets.text(filter_) + bytes([options])))
        await self.read()

    async def message(self):
        first, body = await self.read()
        message = packets.Publish(first & 15, body)
        return message.topic, message.payload, message.is_retained, bool(first & 8), message.identifier


class BrokerTests(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.heard, self.again, self.delays = [], [], {}
        self.broker = Broker(
            lambda topic, payload: self.heard.append(topic), lambda *_: None,
            lambda topic, payload: self.again.append(topic), lambda topic: self.delays.get(topic, 0))
        await self.broker.start(0)
        self.port = self.broker.server.sockets[0].getsockname()[1]
        self.client = Client()
        await self.client.connect(self.port)

    async def asyncTearDown(self):
        self.client.writer.close()
        await self.broker.close()

    def test_filters(self):
        for filter_, topic, expected in (
            ("a/b", "a/b", True), ("a/+", "a/b", True), ("a/#", "a/b/c", True), ("a/#", "a", True),
            ("a/+", "a/b/c", False), ("a/b/c", "a/b", False), ("+/b", "a/c", False),
        ):
            self.assertEqual(matches(filter_, topic), expected, (filter_, topic))

    async def test_retain_handling_and_flag(self):
        self.broker.route("a", b"1", 1, True)
        await self.client.subscribe("a", 1 | 0x20)
        self.broker.route("a", b"2", 1, True)
        self.assertEqual((await self.client.message())[1:3], (b"2", False))
        await self.client.subscribe("a", 1 | AS_PUBLISHED)
        self.assertEqual((await self.client.message())[1:3], (b"2", True))
        self.broker.route("a", b"3", 1, True)
        self.assertEqual((await self.client.message())[1:3], (b"3", True))

    async def test_a_client_does_not_get_its_own_message_with_no_local(self):
        await self.client.subscribe("a", 1 | NO_LOCAL)
        await self.client.subscribe("b", 1)
        self.client.send(packets.publish("a", b"own", 0) + packets.publish("b", b"own", 0))
        self.assertEqual((await self.client.message())[0], "b")
        self.assertEqual(self.heard, ["a", "b"])

    async def test_a_session_outlives_its_connection(self):
        await self.client.subscribe("a", 1)
        self.broker.route("a", b"1")
        await self.client.message()
        self.broker.cut()
        self.broker.route("a", b"2")
        other = Client()
        self.assertEqual(await other.connect(self.port), 1)
        self.assertEqual((await other.message())[1:4], (b"1", False, True))
        self.assertEqual((await other.message())[1:4], (b"2", False, False))
        self.assertEqual(self.again, ["a"])
        other.writer.close()

    async def test_acknowledgements_overtake_those_of_other_topics_only(self):
        self.delays = {"slow": 0.2}
        for identifier, topic in enumerate(("slow", "fast", "slow", "fast"), 1):
            self.client.send(packets.publish(topic, b"", 1, identifier))
        order = [struct.unpack(">H", (await self.client.read())[1])[0] for _ in range(4)]
        self.assertEqual(order, [2, 4, 1, 3])

    async def test_what_is_swallowed_is_neither_heard_nor_acknowledged(self):
        self.assertFalse(self.broker.is_swallowing)
        self.broker.swallow()
        self.assertTrue(self.broker.is_swallowing)
        self.client.send(packets.publish("a", b"", 1, 1) + packets.packet(packets.PINGREQ, 0, b""))
        self.assertEqual((await self.client.read())[0] >> 4, packets.PINGRESP)
        self.assertEqual(self.heard, [])


if __name__ == "__main__":
    unittest.main()
