# Settle
# SPDX-License-Identifier: Apache-2.0
"""Many keys that settle at one instant, and a change of another key meanwhile."""

import os
import re
import socket
import statistics
import subprocess
import time

from . import programs
from .broker import Broker
from .gateway import DONE, END_DEVICE, Gateway, devices


def measure_all(table):
    keys, turns = (10_000, 1) if table.quick else (100_000 - 1, 2)
    runs = [burst(keys) for _ in range(turns)]
    name = f"--now while {round(keys, -3) // 1000}k keys settle at one instant"
    for figure in ("p50", "p99"):
        table.row(
            f"{name}, {figure}",
            "us",
            [run["idle"][figure] for run in runs],
            [run["burst"][figure] for run in runs],
            against="the same while nothing else is pending",
        )
    table.row(f"{name}, events lost", "events", None, [run["lost"] for run in runs], 0)


def burst(keys):
    """Microseconds of a `--now` change to a subscriber, before and during the burst."""
    lines = [*devices(keys, delay="1h", max_wait="none"), END_DEVICE]
    settings = f"limits: {{pending: {keys + 10}}}\nttl: 1h\n"
    with Broker() as broker, Gateway(broker.port, lines, settings) as gateway:
        gateway.connected()
        command = ["mosquitto_sub", "-p", str(broker.port), "-t", DONE, "-q", "1"]
        subscriber = programs.start(command, stdout=subprocess.PIPE, bufsize=0)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(gateway.socket)
            replies = client.makefile("rb")
            number = 0

            def probe():
                nonlocal number
                number += 1
                begin = time.monotonic_ns()
                client.sendall(b'{"key":"end/level","set":%d}\n' % number)
                replies.readline()
                while int(subscriber.stdout.readline()) != number:
                    pass
                return (time.monotonic_ns() - begin) / 1000

            time.sleep(0.5)  # Until it has subscribed.
            idle = [probe_after_rest(probe) for _ in range(200)]
            changes = "".join(
                f'{{"key":"dev{key}/level","set":{key % 1000}}}\n' for key in range(keys)
            )
            gateway.change(changes.encode(), keys)
            busy = []
            with socket.socket(socket.AF_UNIX) as other:
                other.connect(gateway.socket)
                other.sendall(b'{"key":"*","flush":true}\n')
                while is_busy(gateway.process, lambda: busy.append(probe_after_rest(probe))):
                    pass
        programs.end(subscriber)
        found = [int(count) for count in re.findall(r"dropped.* count=(\d+)", gateway.text())]
        return {"idle": quantiles(idle), "burst": quantiles(busy), "lost": sum(found)}


def probe_after_rest(probe):
    time.sleep(0.005)
    return probe()


def is_busy(process, probe):
    """Probes some times; whether the process had more to do meanwhile than to answer."""
    begin, spent = time.monotonic_ns(), programs.cpu_of(process)
    for _ in range(20):
        probe()
    return programs.cpu_of(process) - spent > 0.3 * (time.monotonic_ns() - begin)


def quantiles(values):
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"p50": cuts[49], "p99": cuts[98]}
