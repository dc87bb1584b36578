# Settle
# SPDX-License-Identifier: Apache-2.0
"""A network that is not kind, between a browser and a gateway: it delays, hangs, cuts and reorders requests."""

import queue
import random
import re
import socket
import threading
import time

#: What can become of a request; see `Proxy.rule`.
PASS, SWALLOW, DEAFEN, CUT, LOSE = "pass", "swallow", "deafen", "cut", "lose"


class Proxy:
    """Forwards connections to a port of 127.0.0.1, a request at a time.

    `delay` is the time of one way, in seconds; `jitter` is how much each request and answer may take beyond it, so that
    those of different connections overtake each other. `rule(request)` says what becomes of a request:

    - PASS: it is forwarded; ("hold", SECONDS): after that time.
    - SWALLOW: it does not arrive, and the connection stays.
    - DEAFEN: it arrives, and its answer does not.
    - CUT: the connection is closed before it arrives.
    - LOSE: it arrives, and the connection is closed before its answer.
    - ("late", SECONDS): the connection is closed, and after that time it arrives all the same."""

    def __init__(self, port):
        self.target = port
        self.delay = 0.0
        self.jitter = 0.0
        self.rule = lambda request: PASS
        self.random = random.Random(1)
        self.requests = []
        self.is_down = False
        self.sockets = set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        threading.Thread(target=self.accept, daemon=True).start()

    def reset(self):
        """A kind network again."""
        self.delay = self.jitter = 0.0
        self.rule = lambda request: PASS
        self.is_down = False
        self.requests.clear()

    def stop(self):
        """Closes all connections, and refuses new ones until `is_down` is false."""
        self.is_down = True
        for each in list(self.sockets):
            shut(each)

    def close(self):
        self.listener.close()
        self.stop()

    def pause(self):
        """How long the next message is under way."""
        return self.delay + self.random.random() * self.jitter

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.is_down:
                client.close()
                continue
            threading.Thread(target=Link(self, client).run, daemon=True).start()


class Link:
    """One connection of the browser, with one to the gateway."""

    def __init__(self, proxy, client):
        self.proxy = proxy
        self.client = client
        self.server = None
        self.is_deaf = False
        self.loses = False

    def run(self):
        try:
            self.server = self.connect()
            while request := read_request(self.client):
                self.handle(request)
        except OSError:
            pass
        finally:
            self.end()

    def connect(self):
        server = socket.create_connection(("127.0.0.1", self.proxy.target), timeout=10)
        server.settimeout(None)
        for each in (self.client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.proxy.sockets.add(each)
        threading.Thread(target=self.answer, args=[server], daemon=True).start()
        return server

    def handle(self, request):
        kind = self.proxy.rule(request)
        self.proxy.requests.append((time.time(), request, kind))
        name, seconds = kind if isinstance(kind, tuple) else (kind, 0)
        if name == CUT:
            raise OSError
        if name == "late":
            threading.Thread(target=self.deliver, args=[request, seconds], daemon=True).start()
            raise OSError
        if name == SWALLOW:
            return
        time.sleep(self.proxy.pause() + seconds)
        self.is_deaf = name == DEAFEN
        self.loses = name == LOSE
        self.server.sendall(request)

    def deliver(self, request, seconds):
        """Delivers a request whose client is gone, and waits for its answer."""
        time.sleep(seconds)
        try:
            with socket.create_connection(("127.0.0.1", self.proxy.target), timeout=10) as server:
                server.sendall(request)
                server.recv(65536)
        except OSError:
            pass

    def answer(self, server):
        """Forwards what the gateway sends, each part after its delay, and in its order."""
        parts = queue.SimpleQueue()

        def write():
            try:
                while part := parts.get():
                    due, data = part
                    time.sleep(max(0.0, due - time.monotonic()))
                    self.client.sendall(data)
            except OSError:
                pass
            self.end()

        threading.Thread(target=write, daemon=True).start()
        try:
            while (data := server.recv(65536)) and not self.loses:
                if not self.is_deaf:
                    parts.put((time.monotonic() + self.proxy.pause(), data))
        except OSError:
            pass
        parts.put(None)

    def end(self):
        for each in (self.client, self.server):
            if each:
                self.proxy.sockets.discard(each)
                shut(each)


def shut(each):
    for call in (lambda: each.shutdown(socket.SHUT_RDWR), each.close):
        try:
            call()
        except OSError:
            pass


def read_request(client):
    """The next request with its body; empty at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = client.recv(65536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    while found and len(body) < int(found.group(1)):
        part = client.recv(65536)
        if not part:
            return b""
        data += part
        body += part
    return data


def is_change(request):
    """Whether a request changes something."""
    return request.startswith(b"POST ")
