# Settle
# SPDX-License-Identifier: Apache-2.0
"""The gateway under test: its files, its process, and what it says of itself."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess

from house import device_file

START, STOP = 60, 40  # seconds, on a busy machine
DELAYS = (200, 300, 400)  # ms, one after the other with each reload


class Gateway:
    """Runs the program, and follows all events on its control socket."""

    def __init__(self, program, folder, port, http_port, sites, on_event):
        self.program, self.folder, self.http_port, self.sites, self.on_event = program, folder, http_port, sites, on_event
        self.socket_path, self.log_path = f"{folder}/settle.sock", f"{folder}/settled.log"
        #: How often it was started; whether it runs, has its broker, and is watched.
        self.generation, self.is_ready, self.reloads = 0, False, 0
        self.process, self.watcher, self.readiness = None, None, asyncio.Condition()
        os.makedirs(f"{folder}/devices")
        self.write_devices()
        with open(f"{folder}/settle.yaml", "w", encoding="utf-8") as file:
            file.write(
                f"mqtt: {{url: 'mqtt://127.0.0.1:{port}'}}\nsocket: {self.socket_path}\ndevices: devices\n"
                f"http: {{listen: ['127.0.0.1:{http_port}']}}\njournal: {{path: journal.db}}\n"
                f"limits: {{events: 100000}}\n"
            )

    def write_devices(self):
        path = f"{self.folder}/devices/devices.yaml"
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(device_file(self.sites, DELAYS[self.reloads % len(DELAYS)]))
        os.rename(path + ".new", path)

    async def start(self):
        self.generation += 1
        with open(self.log_path, "ab") as log:
            log.write(f"-- start {self.generation}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", self.program, "run", "--config", f"{self.folder}/settle.yaml"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        end = asyncio.get_running_loop().time() + START
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"the gateway ended with {self.process.returncode}:\n{self.log_end()}")
            if asyncio.get_running_loop().time() > end:
                raise RuntimeError(f"the gateway is not ready after {START} s:\n{self.log_end()}")
            if not self.watcher or self.watcher.done():
                await self.watch()
            status = await self.ask({"status": True})
            if status and status["status"]["brokers"][0]["state"] == "connected":
                break
            await asyncio.sleep(0.05)
        await self.set_ready(True)

    async def set_ready(self, is_ready):
        async with self.readiness:
            self.is_ready = is_ready
            self.readiness.notify_all()

    async def ready(self):
        async with self.readiness:
            await self.readiness.wait_for(lambda: self.is_ready)

    async def watch(self):
        """Begins to follow the events; returns once the gateway has read the request, or is not there."""
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(self.socket_path, limit=1 << 26)
            writer.write(b'{"watch":"*","id":"w"}\n{"pending":"none/*","id":"p"}\n')
            if await reader.readline():
                self.watcher = asyncio.create_task(self.follow(reader, writer))

    async def follow(self, reader, writer):
        with contextlib.suppress(OSError, ValueError):
            while line := await reader.readline():
                event = json.loads(line).get("event")
                if event:
                    self.on_event(event)
        writer.close()

    async def ask(self, request, timeout=10):
        """The answer to one line on the control socket; `None` without one."""
        writer = None
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_unix_connection(self.socket_path, limit=1 << 26)
                writer.write(json.dumps(request | {"id": "ask"}).encode() + b"\n")
                while line := await reader.readline():
                    answer = json.loads(line)
                    if answer.get("id") == "ask":
                        return answer
        except (OSError, ValueError):
            pass
        finally:
            if writer:
                writer.close()
        return None

    async def kill(self):
        self.is_ready = False
        self.process.kill()
        await asyncio.to_thread(self.process.wait)

    async def terminate(self):
        """Its exit code; `None` if it had to be killed."""
        self.is_ready = False
        self.process.send_signal(signal.SIGTERM)
        try:
            return await asyncio.to_thread(self.process.wait, STOP)
        except subprocess.TimeoutExpired:
            await self.kill()
            return None

    async def reload(self, by_signal):
        """What went wrong, or `None`."""
        self.reloads += 1
        self.write_devices()
        if by_signal:
            self.process.send_signal(signal.SIGHUP)
            return None
        answer = await self.ask({"reload": True}, timeout=30)
        return answer and answer.get("error")

    def log_end(self, size=3000):
        with open(self.log_path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            return file.read().decode(errors="replace")

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
