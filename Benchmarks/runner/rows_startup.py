# Settle
# SPDX-License-Identifier: Apache-2.0
"""The start of programs that do their work and exit, or serve."""

import os
import subprocess
import time

from . import measure, programs
from .broker import Broker
from .gateway import Gateway, devices
from .programs import SETTLE


def measure_all(table):
    turns = 50 if table.quick else 300
    with Broker() as broker, Gateway(broker.port, devices(10)) as gateway:
        gateway.connected()
        publish = ["mosquitto_pub", "-p", str(broker.port), "-q", "1", "-t", "x", "-m", "5"]
        change = [programs.installed(SETTLE), "set", "dev0/level", "5", "--socket", gateway.socket]
        theirs, ours = measure.in_turn(turns, lambda: whole(publish), lambda: whole(change))
        for place, unit in enumerate(("us", "us of CPU")):
            table.row(
                "settle set, whole process",
                unit,
                [run[place] for run in theirs],
                [run[place] for run in ours],
                0.5,
                "mosquitto_pub",
            )
        if measure.has_valgrind():
            table.row(
                "settle set, whole process",
                "instructions",
                measure.instructions(publish),
                measure.instructions(change),
                against="mosquitto_pub",
            )
        lines = devices(1000)
        starts, publishes = [], []
        for _ in range(3 if table.quick else 9):
            publishes.append(whole(publish)[0])
            with Gateway(broker.port, lines) as started:
                starts.append(started.seconds_to_ready * 1e6)
        table.row(
            "settled, start to ready, 1,000 devices", "us", publishes, starts, 70, "mosquitto_pub"
        )


def whole(command):
    """Microseconds of a whole process: wall time, and CPU time of user and system."""
    silence = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    path = subprocess.list2cmdline(command[:1])
    begin = time.perf_counter_ns()
    pid = os.posix_spawnp(path, command, os.environ, file_actions=silence)
    _, status, usage = os.wait4(pid, 0)
    spent = time.perf_counter_ns() - begin
    if status:
        raise SystemExit(f"bench: {' '.join(command)} ended with {status}")
    return spent / 1000, (usage.ru_utime + usage.ru_stime) * 1e6
