# Settle
# SPDX-License-Identifier: Apache-2.0
"""Changes accepted with the journal and without."""

import time

from . import measure
from .gateway import Gateway, devices

KEYS = 1000


def measure_all(table):
    # At the end it waits for a commit, which must not count: a tenth of a second of about five.
    changes = 200_000 if table.quick else 3_000_000
    turns = 3 if table.quick else 7
    lines = "".join(
        f'{{"key":"dev{number * 7919 % KEYS}/level","set":{number % 1000}}}\n'
        for number in range(changes)
    ).encode()
    off, on = measure.in_turn(
        turns,
        lambda: accepting("", lines, changes),
        lambda: accepting("journal: {path: journal.db}\n", lines, changes),
    )
    table.row(
        "change accepted over the socket, journal on",
        "ns per change",
        [run[1] for run in off],
        [run[1] for run in on],
        1 / 0.9,
        "the journal off",
    )
    table.row(
        "change accepted over the socket, CPU of the loop, journal on",
        "ns of CPU",
        [run[0] for run in off],
        [run[0] for run in on],
        None,
        "the journal off",
    )


def loop_time(process):
    """CPU nanoseconds of a process's first thread."""
    with open(f"/proc/{process.pid}/task/{process.pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def accepting(journal, lines, changes):
    """Nanoseconds per change up to the last `accepted`: CPU of the loop, wall time; no broker."""
    with Gateway(None, devices(KEYS, "60s", "none"), journal) as gateway:
        begin, start = loop_time(gateway.process), time.monotonic_ns()
        gateway.change(lines, changes)
        spent = time.monotonic_ns() - start
        return (loop_time(gateway.process) - begin) / changes, spent / changes
