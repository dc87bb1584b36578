# Settle
# SPDX-License-Identifier: Apache-2.0
"""Links that can fail: TCP connections on loopback that a test can cut or silence.

As a program it serves the links of its argument (JSON: name -> [port, target port]) and obeys lines
on standard input, each answered by a line:

    cut NAME      every connection is reset, new ones are too
    silence NAME  bytes in both directions vanish; connections stay, and new ones are accepted
    deafen NAME   the same for bytes to the client only
    heal NAME     connections that have lost bytes are reset; new ones work
"""

import asyncio
import json
import os
import subprocess
import sys


class Link:
    def __init__(self, target):
        self.target, self.state, self.pairs = target, "heal", set()

    def set(self, state):
        self.state = state
        for pair in list(self.pairs):
            if state == "cut" or (state == "heal" and pair.is_broken):
                pair.abort()


class Pair:
    """The two connections of a client through a link."""

    def __init__(self, link):
        self.link, self.ends, self.is_broken = link, [], False
        link.pairs.add(self)

    def abort(self):
        self.link.pairs.discard(self)
        for end in self.ends:
            if end.transport:
                end.transport.abort()


class End(asyncio.Protocol):
    def __init__(self, pair, is_client):
        self.pair, self.is_client, self.transport, self.peer, self.early = pair, is_client, None, None, []
        pair.ends.append(self)

    def connection_made(self, transport):
        self.transport = transport
        link = self.pair.link
        if not self.is_client:
            return
        if link.state == "cut":
            return self.pair.abort()
        self.opening = asyncio.get_running_loop().create_task(self.open())

    async def open(self):
        peer = End(self.pair, False)
        peer.peer = self
        try:
            await asyncio.get_running_loop().create_connection(lambda: peer, "127.0.0.1", self.pair.link.target)
        except OSError:
            return self.pair.abort()
        if self.transport.is_closing():
            return peer.transport.abort()
        self.peer = peer
        early, self.early = self.early, []
        for data in early:
            peer.transport.write(data)

    def data_received(self, data):
        state = self.pair.link.state
        if state == "silence" or (state == "deafen" and not self.is_client):
            self.pair.is_broken = True
        elif self.peer:
            self.peer.transport.write(data)
        else:
            self.early.append(data)

    def pause_writing(self):
        if self.peer:
            self.peer.transport.pause_reading()

    def resume_writing(self):
        if self.peer and not self.peer.transport.is_closing():
            self.peer.transport.resume_reading()

    def connection_lost(self, error):
        if self.pair.link.state == "silence":
            return  # The other side learns nothing of it; healing ends it.
        if self.peer and not error:
            self.peer.transport.close()
            self.pair.link.pairs.discard(self.pair)
        else:
            self.pair.abort()


async def serve(addresses):
    loop = asyncio.get_running_loop()
    links = {}
    for name, (port, target) in addresses.items():
        links[name] = link = Link(target)
        await loop.create_server(lambda link=link: End(Pair(link), True), "127.0.0.1", port, reuse_address=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)
    while line := await reader.readline():
        state, name = line.decode().split()
        links[name].set(state)
        print("ok", flush=True)


class Links:
    """The process with the links."""

    def __init__(self, addresses, start):
        self.names = list(addresses)
        self.process = start(
            [sys.executable, os.path.abspath(__file__), json.dumps(addresses)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the links cannot be served")

    def set(self, state, *names):
        for name in names:
            self.process.stdin.write(f"{state} {name}\n")
            self.process.stdin.flush()
            if self.process.stdout.readline() != "ok\n":
                raise RuntimeError("the links have ended")

    def heal(self):
        self.set("heal", *self.names)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1])))
