# Settle
# SPDX-License-Identifier: Apache-2.0
"""The processes of the test: engines, a broker, gateways, and the links between them."""

import fcntl
import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from house import PARTITIONS, device_files
from proxy import Links

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, ".ci"))
from loopback import reserve_port  # noqa: E402

MEMBERS = ("a", "b", "c")
ENGINES = ("n1", "n2", "n3")
STORE = 128 << 20  # bytes of each engine


def synchronizes(program):
    """Whether a server can write to the disk before it acknowledges: those from 2.10 on."""
    words = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = re.search(r"v(\d+)\.(\d+)", words).groups()
    return (int(major), int(minor)) >= (2, 10)


class Process:
    """A program that dies with this process, can be paused, and is started again with the same arguments."""

    # The kernel ends a child when the thread that started it ends: this one stays.
    spawner = ThreadPoolExecutor(max_workers=1)

    def __init__(self, name, arguments, log):
        self.name, self.arguments, self.log_path = name, arguments, log
        self.process, self.is_paused, self.expected = None, False, False
        self.start()

    @classmethod
    def popen(cls, arguments, **options):
        command = ["setpriv", "--pdeathsig", "KILL", *arguments]
        return cls.spawner.submit(subprocess.Popen, command, start_new_session=True, **options).result()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = self.popen(self.arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.expected = False

    def signal(self, number):
        self.is_paused = number == signal.SIGSTOP
        self.process.send_signal(number)

    def kill(self):
        self.expected = True
        self.process.kill()
        self.process.wait()
        self.is_paused = False

    def terminate(self, timeout=30):
        """Ends it in order; its exit code, `None` if it had to be killed."""
        self.expected = True
        self.process.terminate()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    @property
    def is_running(self):
        return self.process.poll() is None

    def log_end(self, size=2000):
        with open(self.log_path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            return file.read().decode(errors="replace")


class Stage:
    """Everything on 127.0.0.1 and in one temporary folder; `with` ends all of it."""

    def __init__(self, program, is_single=False, keep=False, devices=None, has_disks=False, sync=None):
        """With `has_disks`, each engine has a disk of its own, which needs root; `sync` is its `sync_interval`."""
        self.program, self.is_single, self.keep = program, is_single, keep
        self.has_disks, self.sync, self.disks = has_disks, sync, {}
        # The device files: name -> content.
        self.devices = devices or device_files()
        self.members = MEMBERS[:1] if is_single else MEMBERS
        self.holders, self.all, self.is_failed = [], [], False
        self.folder = tempfile.mkdtemp(prefix="settle-cluster-")

    def __enter__(self):
        try:
            self.prepare()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, problem, trace):
        for process in self.all:
            process.kill()
        if getattr(self, "links", None):
            self.links.process.kill()
            self.links.process.wait()
        for holder in self.holders:
            holder.close()
        for disk in self.disks.values():
            disk.unmount()
        is_interrupted = kind and not issubclass(kind, Exception)
        if (kind and not is_interrupted) or self.is_failed or self.keep:
            print(f"The logs are in {self.folder}", file=sys.stderr)
            for name in ENGINES:
                shutil.rmtree(f"{self.folder}/{name}", ignore_errors=True)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def port(self):
        holder, port = reserve_port()
        self.holders.append(holder)
        return port

    def prepare(self):
        self.broker_port = self.port()
        engines = () if self.is_single else ENGINES
        self.client_ports = {name: self.port() for name in engines}
        self.route_ports = {name: self.port() for name in engines}
        addresses = {}
        for member in self.members:
            addresses[f"{member}-mqtt"] = (self.port(), self.broker_port)
            for engine in engines:
                addresses[f"{member}-{engine}"] = (self.port(), self.client_ports[engine])
        # Both engines of a pair try to connect; one route remains.
        for engine in engines:
            for other in set(engines) - {engine}:
                addresses[f"{engine}-{other}"] = (self.port(), self.route_ports[other])
        self.links = Links(addresses, Process.popen)
        self.addresses = addresses
        self.broker = self.run("mosquitto", self.broker_arguments())
        if self.has_disks:
            self.disks = {name: Disk(f"{self.folder}/{name}") for name in engines}
        self.engines = {name: self.run(name, self.engine_arguments(name)) for name in engines}
        os.mkdir(f"{self.folder}/devices")
        for name, content in self.devices.items():
            self.write(f"devices/{name}", content)
        wait_until(lambda: reachable(self.broker_port), 10, "the broker")
        for port in self.client_ports.values():
            wait_until(lambda port=port: reachable(port), 10, "an engine")

    def start_gateways(self):
        self.gateways = {name: self.run(name, self.gateway_arguments(name)) for name in self.members}
        for name in self.members:
            wait_until(lambda name=name: self.ask(name, "status") or not self.gateways[name].is_running, 60, f"gateway {name}")
            if not self.gateways[name].is_running:
                raise RuntimeError(f"gateway {name} has ended:\n{self.gateways[name].log_end()}")

    def run(self, name, arguments):
        process = Process(name, arguments, f"{self.folder}/{name}.log")
        self.all.append(process)
        return process

    def write(self, name, content):
        path = f"{self.folder}/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
        return path

    def broker_arguments(self):
        # As another user, which it would become, it would not end with this process.
        path = self.write(
            "mosquitto.conf",
            f"user {getpass.getuser()}\nlistener {self.broker_port} 127.0.0.1\nallow_anonymous true\npersistence false\n"
            "max_queued_messages 0\nmax_inflight_messages 1000\nmax_connections -1\nset_tcp_nodelay true\n",
        )
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        return [program, "-c", path]

    def engine_arguments(self, name):
        routes = [f"nats://127.0.0.1:{port}" for link, (port, _) in self.addresses.items() if link.startswith(f"{name}-")]
        program = shutil.which("nats-server") or "/usr/sbin/nats-server"
        sync = self.sync or ("always" if synchronizes(program) else None)
        sync = f", sync_interval: {sync}" if sync else ""
        # Nothing listens at the address that others would learn of, so that every route is a link.
        path = self.write(
            f"{name}.conf",
            f"server_name: {name}\nlisten: 127.0.0.1:{self.client_ports[name]}\n"
            f"jetstream {{store_dir: \"{self.folder}/{name}\", max_file_store: {STORE}, max_memory_store: 67108864{sync}}}\n"
            f"cluster {{name: test, listen: 127.0.0.1:{self.route_ports[name]}, no_advertise: true,"
            f" cluster_advertise: \"127.0.0.1:{self.port()}\", routes: {json.dumps(routes)}}}\n",
        )
        return [program, "-c", path]

    def gateway_arguments(self, name):
        if self.is_single:
            more = f"journal: {{path: {self.folder}/journal.db}}"
        else:
            urls = ", ".join(f"nats://127.0.0.1:{self.addresses[f'{name}-{engine}'][0]}" for engine in ENGINES)
            more = (
                f"cluster: {{name: test, member: {name}, nats: [{urls}],"
                f" partitions: {PARTITIONS}, replicas: {len(ENGINES)}}}"
            )
        path = self.write(
            f"{name}.yaml",
            f"mqtt: {{url: \"mqtt://127.0.0.1:{self.addresses[f'{name}-mqtt'][0]}\"}}\n"
            f"socket: {self.socket_path(name)}\ndevices: devices\n"
            f"http: {{listen: [\"127.0.0.1:{self.port()}\"]}}\n{more}\n",
        )
        return [self.program, "run", "--config", path]

    def socket_path(self, name):
        return f"{self.folder}/{name}.sock"

    def ask(self, name, request, argument=True, timeout=3):
        """A gateway's answer to a request on its control socket; `None` without one."""
        return (self.exchange(name, {request: argument}, timeout) or {}).get(request)

    def exchange(self, name, line, timeout=3):
        """The first answer to a line on a gateway's control socket; `None` without one."""
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(timeout)
                client.connect(self.socket_path(name))
                client.sendall(json.dumps(line | {"id": "ask"}).encode() + b"\n")
                for answer in map(json.loads, client.makefile("rb")):
                    if answer.get("id") == "ask":
                        return answer
        except (OSError, ValueError):
            pass
        return None

    def cut_power(self, engines, gateways=()):
        """The machines of these engines and gateways lose their power at once."""
        for name in engines:
            self.disks[name].stop()
        for process in [self.engines[name] for name in engines] + [self.gateways[name] for name in gateways]:
            process.kill()

    def return_power(self, engines, gateways=()):
        for name in engines:
            self.disks[name].restart()
        for process in [self.engines[name] for name in engines] + [self.gateways[name] for name in gateways]:
            process.start()

    def unexpected_ends(self):
        """The processes that ended by themselves; each is started again."""
        for process in self.all:
            if not process.is_running and not process.expected:
                code, end = process.process.returncode, process.log_end()
                process.start()
                yield f"{process.name} ended with {code}:\n{end}"


class Disk:
    """A file system in a file, mounted at a folder, which can stop as if its power was cut: what was not synchronised is gone."""

    SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
    WITHOUT_FLUSH = 2

    def __init__(self, folder):
        self.folder, self.image = folder, f"{folder}.img"
        with open(self.image, "wb") as file:
            file.truncate(2 * STORE)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)
        os.mkdir(folder)
        self.mount()

    def mount(self):
        # A device of its own each time: one that stopped may live on in another mount namespace.
        command = ["losetup", "--find", "--show", self.image]
        self.device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(["mount", self.device, self.folder], check=True)

    def unmount(self):
        # A process that was killed may still be there for a moment.
        for _ in range(100):
            if subprocess.run(["umount", self.folder], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.05)
        subprocess.run(["losetup", "--detach", self.device], capture_output=True, check=False)

    def stop(self):
        file = os.open(self.folder, os.O_RDONLY)
        fcntl.ioctl(file, self.SHUTDOWN, self.WITHOUT_FLUSH.to_bytes(4, sys.byteorder))
        os.close(file)

    def restart(self):
        self.unmount()
        self.mount()


def reachable(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def wait_until(check, seconds, what, step=0.05):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        threading.Event().wait(step)
    raise TimeoutError(f"not in {seconds} s: {what}")
