# Settle
# SPDX-License-Identifier: Apache-2.0
"""Links must fail as they are told to."""

import socket
import unittest

from processes import Process
from proxy import Links


class LinkTests(unittest.TestCase):
    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.server.close)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.links = Links({"x": (self.port, self.server.getsockname()[1])}, Process.popen)
        self.addCleanup(self.links.process.wait)
        self.addCleanup(self.links.process.kill)

    def pair(self):
        client = socket.create_connection(("127.0.0.1", self.port), timeout=5)
        server = self.server.accept()[0]
        for end in (client, server):
            end.settimeout(0.5)
            self.addCleanup(end.close)
        return client, server

    def test_bytes_pass_in_both_directions(self):
        client, server = self.pair()
        client.sendall(b"a" * 300_000)
        received = 0
        while received < 300_000:
            received += len(server.recv(65536))
        server.sendall(b"b")
        self.assertEqual(client.recv(9), b"b")
        client.close()
        self.assertEqual(server.recv(9), b"")

    def test_a_cut_link_resets_connections_and_new_ones(self):
        client, server = self.pair()
        self.links.set("cut", "x")
        for end in (client, server, socket.create_connection(("127.0.0.1", self.port), timeout=5)):
            with self.assertRaises(ConnectionResetError), end:
                if not end.recv(9):
                    raise ConnectionResetError
        self.links.heal()
        self.pair()

    def test_a_silent_link_keeps_the_connection_until_it_is_healed(self):
        client, server = self.pair()
        self.links.set("silence", "x")
        client.sendall(b"lost")
        for end in (client, server):
            with self.assertRaises(TimeoutError):
                end.recv(9)
        self.links.heal()
        with self.assertRaises(ConnectionResetError):
            if not client.recv(9):
                raise ConnectionResetError
        client, server = self.pair()
        client.sendall(b"a")
        self.assertEqual(server.recv(9), b"a")

    def test_a_deaf_client_is_heard(self):
        client, server = self.pair()
        self.links.set("deafen", "x")
        client.sendall(b"a")
        self.assertEqual(server.recv(9), b"a")
        server.sendall(b"lost")
        with self.assertRaises(TimeoutError):
            client.recv(9)
