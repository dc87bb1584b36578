# Settle
# SPDX-License-Identifier: Apache-2.0
"""The bridges that a user would write instead, at full flood."""

import os
import subprocess
import sys
import time

from . import measure, programs
from .broker import Broker
from .gateway import Gateway, devices
from .rows_inbound import flood

KEYS = 1000
QUIET = 300
ROUTE = (
    "routes: [{from: 'in/#', to: 'out/#', qos: 1,"
    f" policy: {{delay: {QUIET}ms, max_wait: none}}}}]\n"
)
PEERS = (
    ("paho_timers.py", "paho + threading.Timer", 30),
    ("aiomqtt_call_later.py", "aiomqtt + call_later", 8),
    ("paho_sweeper.py", "careful paho", 3),
)
PINNED = ("paho-mqtt==2.1.0", "aiomqtt==2.5.1")


def python():
    """A Python that has the peers' libraries, or `None`."""
    place = os.path.join(programs.OUT, "venv")
    program = f"{place}/bin/python"
    check = [program, "-c", "import aiomqtt, paho.mqtt.client"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if os.path.exists(program) and subprocess.run(check, check=False, **quiet).returncode == 0:
        return program
    try:
        subprocess.run([sys.executable, "-m", "venv", place], check=True, timeout=240, **quiet)
        install = [program, "-m", "pip", "install", "--quiet", *PINNED]
        subprocess.run(install, check=True, timeout=240, **quiet)
    except (subprocess.SubprocessError, OSError):
        return None
    return program


def measure_all(table):
    program = python()
    if program is None:
        table.skip("bridges at full flood", "paho-mqtt and aiomqtt cannot be installed")
        table.skip("idle memory", "paho-mqtt cannot be installed")
        return
    turns = 1 if table.quick else 2
    few, many = (10_000, 50_000) if table.quick else (10_000, 100_000)
    for script, title, factor in PEERS:
        theirs, ours = measure.in_turn(
            turns,
            lambda script=script: bridge_cpu(program, script, few),
            lambda: gateway_cpu(many),
        )
        table.row(
            f"bridge at full flood, QoS 1, 1k keys: {title}",
            "ms per 10k messages",
            theirs,
            ours,
            1 / factor,
            title,
        )
    theirs, ours = measure.in_turn(turns, lambda: bridge_memory(program), gateway_memory)
    for place, name in enumerate(("resident", "anonymous")):
        table.row(
            f"idle memory, 1,000 devices, {name}",
            "MB",
            [run[place] / 1e6 for run in theirs],
            [run[place] / 1e6 for run in ours],
            0.75 if place == 0 else None,
            "paho + threading.Timer",
        )


def bridge(program, script, port):
    """A started bridge that is subscribed."""
    path = os.path.join(programs.FOLDER, "Bridges", script)
    child = programs.start(
        [program, path, str(port), str(QUIET), "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    programs.ready(child)
    return child


def routed(port, total):
    """Messages on the bridges' topics, until the last one is published."""
    flood(port, total, 1, KEYS, "in/dev", "/level", "in/end", "out/end")
    time.sleep(0.3)


def cost(process, port, total):
    """Milliseconds of CPU per ten thousand messages."""
    begin = programs.cpu_of(process)
    routed(port, total)
    return (programs.cpu_of(process) - begin) / total / 100


def bridge_cpu(program, script, total):
    with Broker() as broker:
        child = bridge(program, script, broker.port)
        try:
            return cost(child, broker.port, total)
        finally:
            programs.end(child)


def gateway_cpu(total):
    with Broker() as broker, Gateway(broker.port, (), ROUTE) as gateway:
        gateway.connected()
        return cost(gateway.process, broker.port, total)


def bridge_memory(program):
    """After one message on each of a thousand topics, when all are published."""
    with Broker() as broker:
        child = bridge(program, "paho_timers.py", broker.port)
        try:
            routed(broker.port, KEYS)
            time.sleep(1)
            return programs.resident_of(child)
        finally:
            programs.end(child)


def gateway_memory():
    lines = devices(KEYS)
    with Broker() as broker, Gateway(broker.port, lines, ROUTE) as gateway:
        gateway.connected()
        routed(broker.port, KEYS)
        time.sleep(1)
        return programs.resident_of(gateway.process)
