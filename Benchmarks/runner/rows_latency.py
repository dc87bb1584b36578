# Settle
# SPDX-License-Identifier: Apache-2.0
"""The time that a change without a quiet period takes to a subscriber."""

import os
import time

from . import programs
from .broker import Broker
from .gateway import Gateway, devices
from .programs import output, reference


def measure_all(table):
    rounds, turns = (300, 2) if table.quick else (1000, 3)
    runs = [latencies(rounds) for _ in range(turns)]
    for figure in ("p50", "p99"):
        sides = {name: [run[name][figure] / 1000 for run in runs] for name in runs[0]}
        table.row(
            f"--now, control socket to subscriber, {figure}",
            "us",
            sides["direct"],
            sides["gateway"],
            against="C publisher with NODELAY",
        )
        table.row(
            f"--now, control socket to subscriber, {figure}, and a relay in C",
            "us",
            sides["relay"],
            sides["gateway"],
            1.5,
            "C relay, socket to MQTT",
        )


def latencies(rounds):
    with Broker() as broker, Gateway(broker.port, devices(100)) as gateway:
        gateway.connected()
        path = f"{gateway.folder}/relay"
        relay = programs.start([reference("relay"), str(broker.port), path])
        while not os.path.exists(path):
            time.sleep(0.01)
        time.sleep(0.05)
        arguments = [str(broker.port), gateway.socket, path, str(rounds)]
        figures = output([reference("latency"), *arguments])
        programs.end(relay)
        return figures
