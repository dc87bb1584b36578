# Settle
# SPDX-License-Identifier: Apache-2.0
"""Shutdown while everything is pending."""

import sys
import time

from . import measure, programs
from .broker import Broker
from .gateway import Gateway, devices, sent_of, time_of
from .programs import output, reference

WINDOW = 20


def measure_all(table):
    keys = 10_000 if table.quick else 100_000
    turns = 2 if table.quick else 3
    theirs, ours = measure.in_turn(turns, lambda: publisher(keys), lambda: gateway(keys))
    figure = f"shutdown flush of {keys // 1000}k pending keys, QoS 1"
    rows = (
        (figure, "s", "seconds", "acknowledged", 1.3),
        ("shutdown flush, until the process has ended", "s", "seconds", "ended", None),
        ("shutdown flush, CPU until the process has ended", "s of CPU", "cpu", "cpu", None),
    )
    for name, unit, their_figure, our_figure, goal in rows:
        table.row(
            name,
            unit,
            [run[their_figure] for run in theirs],
            [run[our_figure] for run in ours],
            goal,
            f"C publisher, window of {WINDOW}",
        )


def publisher(keys):
    with Broker() as broker:
        figures = output([reference("publisher"), str(broker.port), str(keys), str(WINDOW)])
        return {"seconds": figures["seconds"], "cpu": figures["cpu_ns"] / 1e9}


def gateway(keys):
    """The report of `flush` for a new gateway."""
    lines = devices(keys, delay="1h", max_wait="none")
    settings = f"shutdown: {{timeout: 10m}}\nlimits: {{pending: {keys}}}\nttl: 1h\n"
    with Broker() as broker, Gateway(broker.port, lines, settings) as process:
        process.connected()
        return flush(process, keys)


def flush(gateway, keys):
    """Seconds from SIGTERM to the last acknowledgement and to the end, and the CPU time until then.

    When the last value was acknowledged is what the gateway's log says, to the millisecond.
    """
    changes = "".join(f'{{"key":"dev{key}/level","set":{key % 1000}}}\n' for key in range(keys))
    gateway.change(changes.encode(), keys)
    before = programs.cpu_of(gateway.process)
    begin = time.time()
    seconds, after, log = gateway.terminate()
    if sent_of(log) != keys:
        sys.exit(f"bench: {sent_of(log)} of {keys} sent:\n{log[-2000:]}")
    return {
        "acknowledged": time_of(log, "Values flushed") - begin,
        "ended": seconds,
        "cpu": (after - before) / 1e9,
    }
