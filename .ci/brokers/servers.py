# Settle
# SPDX-License-Identifier: Apache-2.0
"""MQTT brokers of other projects, each on free loopback ports and in a folder of its own."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from loopback import reserve_port
from roots import ROOT, debian_root, run


class Broker:
    """A broker that can be started again on the same port."""

    #: What the table calls it, and the word that chooses it.
    title = word = ""
    #: How long a start may take, in seconds.
    patience = 30
    #: The version of MQTT that the gateway has to be told, if it cannot find it out.
    protocol = None
    #: What the broker calls its folder, if not as everybody does.
    seen = None

    def __init__(self, folder):
        self.folder, self.process = folder, None
        self.seen = self.seen or folder
        self.holder, self.port = reserve_port()
        os.makedirs(folder)
        self.configure()

    # For each broker.

    @classmethod
    def install(cls):
        """Installs it if need be."""

    @classmethod
    def version(cls):
        raise NotImplementedError

    def configure(self):
        """Writes its configuration."""

    def command(self):
        raise NotImplementedError

    # For all.

    def start(self):
        with open(f"{self.folder}/log", "ab") as log:
            # The kernel ends everything in the new namespace with its first process, the broker.
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--", *self.command()],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment(), cwd="/",
            )
        end = time.monotonic() + self.patience
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.title} does not start, see {self.folder}/log")
            time.sleep(0.1)

    def environment(self):
        return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": self.seen}

    def answers(self):
        """Whether it accepts an MQTT connection; a listening socket is no proof."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as client:
                client.sendall(b"\x10\x11\0\4MQTT\4\2\0\x1e\0\5probe")
                return client.recv(4)[:1] == b"\x20"
        except OSError:
            return False

    def stop(self, number=signal.SIGTERM):
        """Ends it as an operator would, or as a crash would."""
        if self.process is None:
            return
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            for child in file.read().split():
                os.kill(int(child), number)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def close(self):
        try:
            self.stop(signal.SIGKILL)
        except OSError:
            self.process.kill()
            self.process.wait()
        self.holder.close()


class Mosquitto(Broker):
    title, word = "mosquitto, Debian 12", "mosquitto"
    prefix = ()

    @classmethod
    def install(cls):
        run(f"{ROOT}/.ci/install-deps", "--only", "mosquitto")

    @classmethod
    def version(cls):
        done = subprocess.run([*cls.prefix, "/usr/sbin/mosquitto", "-h"], stdout=subprocess.PIPE, text=True)
        return re.search(r"version ([\d.]+)", done.stdout)[1]

    def configure(self):
        with open(f"{self.folder}/mosquitto.conf", "w", encoding="ascii") as file:
            file.write(
                f"listener {self.port} 127.0.0.1\nallow_anonymous true\nuser root\n"
                f"persistence true\npersistence_location {self.seen}/\n"
            )

    def command(self):
        return ["/usr/sbin/mosquitto", "-c", f"{self.seen}/mosquitto.conf"]


class Rooted(Broker):
    """A broker in a Debian root of its own."""

    seen = "/mnt"
    suite = package = ""
    root = None

    @classmethod
    def install(cls):
        cls.root = debian_root(cls.suite, cls.package)

    @classmethod
    def version(cls):
        text = run("chroot", cls.root, "dpkg-query", "-W", "-f", "${Version}", cls.package)
        return text.split("-")[0].split(":")[-1]

    def inside(self, command):
        """A shell that mounts the folder, /proc and /dev in the root, and becomes the command."""
        script = (
            f"mount --bind {self.folder} {self.root}{self.seen} && mount -t proc proc {self.root}/proc && "
            f"mount --rbind /dev {self.root}/dev && exec chroot {self.root} {command}"
        )
        return ["sh", "-c", script]


class NewMosquitto(Rooted, Mosquitto):
    title, word = "mosquitto, Debian sid", "mosquitto-sid"
    suite, package = "sid", "mosquitto"

    def command(self):
        return self.inside(f"/usr/sbin/mosquitto -c {self.seen}/mosquitto.conf")


class RabbitMQ(Rooted):
    title, word = "RabbitMQ, plugin rabbitmq_mqtt", "rabbitmq"
    suite, package = "bookworm", "rabbitmq-server"
    patience = 180

    def configure(self):
        self.ports = [reserve_port() for _ in range(2)]
        with open(f"{self.folder}/rabbitmq.conf", "w", encoding="ascii") as file:
            file.write(f"listeners.tcp = none\nmqtt.listeners.tcp.1 = 127.0.0.1:{self.port}\nlog.console = true\n")
        with open(f"{self.folder}/plugins", "w", encoding="ascii") as file:
            file.write("[rabbitmq_mqtt].\n")

    def environment(self):
        return super().environment() | {
            "RABBITMQ_NODENAME": "settle@localhost", "RABBITMQ_CONFIG_FILE": f"{self.seen}/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{self.seen}/plugins", "RABBITMQ_MNESIA_BASE": self.seen,
            "RABBITMQ_LOGS": "-", "RABBITMQ_LOG_BASE": self.seen, "ERL_EPMD_PORT": str(self.ports[0][1]),
            "ERL_EPMD_ADDRESS": "127.0.0.1", "RABBITMQ_DIST_PORT": str(self.ports[1][1]),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        }

    def command(self):
        # The Erlang machine becomes the first process, and its name server ends with it.
        program = "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"
        return self.inside(f"sh -c 'exec {program}'")

    def close(self):
        super().close()
        for holder, _ in self.ports:
            holder.close()


class NATS(Broker):
    title, word = "nats-server, Debian 12", "nats"

    @classmethod
    def install(cls):
        run(f"{ROOT}/.ci/install-deps", "--only", "nats-server")

    @classmethod
    def version(cls):
        return re.search(r"v([\d.]+)", run("nats-server", "--version"))[1]

    def configure(self):
        self.other = reserve_port()
        with open(f"{self.folder}/nats.conf", "w", encoding="ascii") as file:
            file.write(
                f"server_name: settle\nlisten: 127.0.0.1:{self.other[1]}\n"
                f"jetstream {{store_dir: {self.folder}/store}}\nmqtt {{listen: 127.0.0.1:{self.port}}}\n"
            )

    def command(self):
        return [shutil.which("nats-server"), "-c", f"{self.folder}/nats.conf"]

    def close(self):
        super().close()
        self.other[0].close()


class AMQTT(Broker):
    title, word = "amqtt, PyPI", "amqtt"
    # It reads a CONNECT of MQTT 5 as one of 3.1.1, and waits for bytes that never come.
    protocol = "3.1.1"
    place = f"{ROOT}/.build/brokers/amqtt"

    @classmethod
    def install(cls):
        if not os.path.exists(f"{cls.place}/bin/amqtt"):
            shutil.rmtree(cls.place, ignore_errors=True)
            run(sys.executable, "-m", "venv", cls.place)
            run(f"{cls.place}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "amqtt")

    @classmethod
    def version(cls):
        return run(f"{cls.place}/bin/amqtt", "--version").split()[-1]

    def configure(self):
        with open(f"{self.folder}/amqtt.yaml", "w", encoding="ascii") as file:
            file.write(
                f"listeners: {{default: {{type: tcp, bind: '127.0.0.1:{self.port}'}}}}\n"
                "plugins:\n  amqtt.plugins.authentication.AnonymousAuthPlugin: {allow_anonymous: true}\n"
            )

    def command(self):
        return [f"{self.place}/bin/amqtt", "-c", f"{self.folder}/amqtt.yaml"]


ALL = [Mosquitto, NewMosquitto, RabbitMQ, NATS, AMQTT]
