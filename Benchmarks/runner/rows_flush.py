# Settle
# SPDX-License-Identifier: Apache-2.0
"""The way out with everything still pending."""

import sys

from . import measure, programs
from .broker import Broker
from .gateway import Gateway, devices, sent_of
from .programs import output, reference

WINDOW = 20


def measure_all(table):
    keys = 10_000 if table.quick else 100_000
    turns = 2 if table.quick else 3
    theirs, ours = measure.in_turn(turns, lambda: publisher(keys), lambda: gateway(keys))
    for place, unit in enumerate(("s", "s of CPU")):
        table.row(
            f"shutdown flush of {keys // 1000}k pending keys, QoS 1",
            unit,
            [run[place] for run in theirs],
            [run[place] for run in ours],
            1.3 if place == 0 else None,
            f"C publisher, window of {WINDOW}",
        )


def publisher(keys):
    with Broker() as broker:
        figures = output([reference("publisher"), str(broker.port), str(keys), str(WINDOW)])
        return figures["seconds"], figures["cpu_ns"] / 1e9


def gateway(keys):
    """Seconds from SIGTERM to the end of the process, and the CPU time it took meanwhile."""
    lines = devices(keys, delay="1h", max_wait="none")
    settings = f"shutdown: {{timeout: 10m}}\nlimits: {{pending: {keys}}}\nttl: 1h\n"
    with Broker() as broker, Gateway(broker.port, lines, settings) as process:
        process.connected()
        return flush(process, keys)


def flush(gateway, keys):
    changes = "".join(f'{{"key":"dev{key}/level","set":{key % 1000}}}\n' for key in range(keys))
    gateway.change(changes.encode(), keys)
    before = programs.cpu_of(gateway.process)
    seconds, after, log = gateway.terminate()
    if sent_of(log) != keys:
        sys.exit(f"bench: {sent_of(log)} of {keys} sent:\n{log[-2000:]}")
    return seconds, (after - before) / 1e9
