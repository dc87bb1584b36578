# Settle
# SPDX-License-Identifier: Apache-2.0
"""Counts that must not grow unnoticed: instructions and allocations per change.

recorded.json has the figures of the tree it is in. A commit that makes one grow by more than 3 %
changes the recorded figure too, so that the growth is seen and meant.
"""

import json
import os
import platform
import statistics
import subprocess
import sys

from . import measure, programs, rows_inbound, rows_queue
from .programs import BENCH

RECORDED = os.path.join(programs.FOLDER, "recorded.json")
ALLOWED = 1.03

# The counts of each part, and how to measure them.
COUNTS = {
    "queue": {
        "instructions per enqueue, key as bytes, 1k keys": lambda: rows_queue.per_change(
            BENCH, "enqueue", 1000, 100, 1
        ),
        "instructions per enqueue incl. firing, 1k keys": lambda: rows_queue.per_change(
            BENCH, "burst", 1000, 10, rows_queue.CHANGES_PER_BURST
        ),
        "instructions per MQTT set in the state machine": lambda: rows_queue.per_change(
            BENCH, "machine", 1000, 100, 1
        ),
        "allocations per enqueue, known keys": lambda: rows_queue.allocations("enqueue"),
        "allocations per burst round, firing included": lambda: rows_queue.allocations("burst"),
        "allocations per MQTT set in the state machine": lambda: rows_queue.allocations("machine"),
    },
    "inbound": {
        "instructions per inbound message, QoS 0": lambda: rows_inbound.gateway_instructions(0),
        "instructions per inbound message, QoS 1": lambda: rows_inbound.gateway_instructions(1),
    },
}


def compiler():
    """The compiler: counts of two compilers cannot be compared."""
    command = ["swift", "--version"]
    text = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    words = text.replace("(", " ").split()
    version = words[words.index("version") + 1] if "version" in words else "unknown"
    return f"Swift {version}, {platform.machine()}"


def count(parts):
    """Measures the counts of these parts."""
    if not measure.has_valgrind():
        sys.exit("bench: the guard needs valgrind: apt-get install valgrind")
    figures = {}
    for part in parts:
        for name, counter in COUNTS.get(part, {}).items():
            # Each table has its own hash seed, which changes some counts by about 1 %.
            repeats = 3 if part == "queue" else 1
            figures[name] = round(statistics.median(counter() for _ in range(repeats)), 2)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return figures


def read():
    with open(RECORDED, encoding="utf-8") as file:
        return json.load(file)


def check(parts):
    """Compares with the recorded figures; the exit code."""
    recorded = read()
    if recorded["compiler"] != compiler():
        print(
            f"bench: recorded with {recorded['compiler']}, this is {compiler()}: instructions are"
            " not compared, allocations are"
        )
    comparable = recorded["compiler"] == compiler()
    grown = []
    for name, now in count(parts).items():
        before = recorded["figures"].get(name)
        if before is None:
            print(f"  {name}: {now:,.2f}, not recorded")
            grown.append(name)
            continue
        is_grown = now > before * ALLOWED + 0.005
        counts = comparable or name.startswith("allocations")
        word = "GROWN" if is_grown and counts else "more, not compared" if is_grown else "ok"
        change = f" ({(now / before - 1) * 100:+.1f} %)" if before else ""
        print(f"  {name}: {now:,.2f}, recorded {before:,.2f}{change}: {word}")
        if is_grown and counts:
            grown.append(name)
    if not grown:
        return 0
    print(
        f"bench: {len(grown)} of the counts above grew by more than {(ALLOWED - 1) * 100:.0f} %, or"
        " are not recorded.\nMake it cheaper again, or, if it is worth its price, record the new"
        " figures in the same commit:\nmake bench-record"
    )
    return 1


def record(parts):
    """Writes the figures of these parts, and keeps those of the others."""
    document = read() if os.path.exists(RECORDED) else {"figures": {}}
    document["compiler"] = compiler()
    document["figures"].update(count(parts))
    with open(RECORDED, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)
        file.write("\n")
    print(f"Recorded in {os.path.relpath(RECORDED)}.")
