# Settle
# SPDX-License-Identifier: Apache-2.0
"""The queue against the C intrusive list, and against a timer per key."""

import os
import shutil
import subprocess
import sys

from . import measure, programs
from .programs import BENCH, output, reference

CHANGES_PER_BURST = 10
LIST = "C intrusive list"


def run(program, workload, keys, rounds):
    return output([program, workload, str(keys), str(rounds)])


def per_change(program, workload, keys, rounds, changes):
    """Instructions per change of one of the two programs."""

    def count(length):
        return measure.instructions([program, workload, str(keys), str(length)])

    return measure.per_unit(count, rounds, 3 * rounds, keys * changes)


def measure_all(table):
    both_do_the_same()
    instructions(table)
    time(table)
    timers(table)
    memory(table)
    idleness(table)


def both_do_the_same():
    for keys in (7, 1000):
        theirs = run(reference("reference"), "burst", keys, 5)
        ours = run(BENCH, "burst", keys, 5)
        for name in ("runs", "checksum"):
            if theirs[name] != ours[name]:
                sys.exit(f"bench: with {keys} keys {name} differs: {theirs[name]}, {ours[name]}")


def instructions(table):
    if not measure.has_valgrind():
        table.skip("instructions, all rows", "valgrind is not installed")
        return
    scale = 1 if table.quick else 2
    c_list = reference("reference")
    table.row(
        "enqueue, key as bytes, 1k keys",
        "instructions",
        per_change(c_list, "enqueue", 1000, 100 * scale, 1),
        per_change(BENCH, "enqueue", 1000, 100 * scale, 1),
        1.2,
        LIST,
    )
    for keys, rounds, name in ((1000, 10 * scale, "1k"), (100_000, 1, "100k")):
        if table.quick and keys > 1000:
            continue
        table.row(
            f"enqueue incl. firing, {name} keys",
            "instructions",
            per_change(c_list, "burst", keys, rounds, CHANGES_PER_BURST),
            per_change(BENCH, "burst", keys, rounds, CHANGES_PER_BURST),
            1.3,
            LIST,
        )
    table.row(
        "LastOutQueue, one thread",
        "instructions",
        per_change(BENCH, "tasks", 1000, 10 * scale, CHANGES_PER_BURST),
        per_change(BENCH, "queue", 1000, 10 * scale, CHANGES_PER_BURST),
        3,
        "the core, same tasks",
    )
    table.row(
        "LastOutValueQueue, one thread",
        "instructions",
        per_change(BENCH, "numbers", 1000, 10 * scale, CHANGES_PER_BURST),
        per_change(BENCH, "values", 1000, 10 * scale, CHANGES_PER_BURST),
        3,
        "the core, same values",
    )
    table.row(
        "MQTT set in the state machine",
        "instructions",
        per_change(BENCH, "keyed", 1000, 100 * scale, 1),
        per_change(BENCH, "machine", 1000, 100 * scale, 1),
        against="the core's enqueue",
    )
    table.row("allocations per enqueue, known keys", "allocations", None, allocations("enqueue"), 0)
    table.row(
        "allocations per MQTT set in the state machine",
        "allocations",
        None,
        allocations("machine"),
        0,
    )


def allocations(workload):
    """Allocations per change of a known key."""

    def count(rounds):
        child = subprocess.run(
            [BENCH, workload, "1000", str(rounds)],
            check=True,
            capture_output=True,
            text=True,
            env=dict(os.environ, LD_PRELOAD=reference("allocations.so")),
        )
        return int(child.stderr.split()[-2])

    return measure.per_unit(count, 10, 110, 1000)


def cpu(program, workload, keys, bursts, **options):
    """A measurement: CPU nanoseconds per change."""
    changes = keys * bursts * CHANGES_PER_BURST
    return lambda: run(program, workload, keys, bursts)["cpu_ns"] / changes


def time(table):
    turns, scale = (3, 1) if table.quick else (7, 2)
    for keys, bursts, name in ((1000, 200 * scale, "1k"), (100_000, 1 + scale, "100k")):
        theirs, ours = measure.in_turn(
            turns,
            cpu(reference("reference"), "burst", keys, bursts),
            cpu(BENCH, "burst", keys, bursts),
        )
        table.row(f"enqueue incl. firing, {name} keys", "ns of CPU", theirs, ours, 1.3, LIST)
    core, queue = measure.in_turn(
        turns, cpu(BENCH, "tasks", 1000, 50 * scale), cpu(BENCH, "queue", 1000, 50 * scale)
    )
    table.row(
        "LastOutQueue, one thread", "ns of CPU", core, queue, 3, "the core, same tasks"
    )
    core, queue = measure.in_turn(
        turns, cpu(BENCH, "numbers", 1000, 50 * scale), cpu(BENCH, "values", 1000, 50 * scale)
    )
    table.row(
        "LastOutValueQueue, one thread", "ns of CPU", core, queue, 3, "the core, same values"
    )
    # swift-async-algorithms' debounce takes 1,841 ns for a change at 1k keys, without its own keys; it is
    # not a dependency here.
    sleep, queue = measure.in_turn(3, cpu(BENCH, "sleep", 1000, 5), cpu(BENCH, "async", 1000, 5))
    table.row(
        "LastOutQueue, asynchronous tasks", "ns of CPU", sleep, queue, 1, "Task.sleep per change"
    )


def timers(table):
    """A timer per key by three runtimes, in real time."""
    lodash = find_lodash()
    others = (
        ("lodash on node", lodash, (10, 10)),
        ("Python asyncio", [sys.executable, timer("asyncio_call_later.py")], (60, 10)),
        ("DispatchSource per key", [BENCH, "dispatch"], (20, 8)),
    )
    for keys, bursts, name in ((1000, 10, "1k"), (100_000, 1, "100k")):
        if table.quick and keys > 1000:
            continue
        for title, command, goals in others:
            figure = f"enqueue incl. firing, {name} keys, and {title}"
            if command is None:
                table.skip(figure, "node or lodash is not installed")
                continue
            theirs, ours = measure.in_turn(
                3 if keys == 1000 else 1,
                lambda command=command: timer_cpu(command, keys, bursts),
                cpu(BENCH, "burst", keys, 200 if keys == 1000 else 4),
            )
            goal = 1 / goals[0 if keys == 1000 else 1]
            table.row(figure, "ns of CPU", theirs, ours, goal, title)


def timer(name):
    return os.path.join(programs.FOLDER, "Timers", name)


def timer_cpu(command, keys, bursts):
    figures = output([*command, str(keys), str(bursts)])
    if figures["runs"] != keys * bursts:
        warning = f" {command[-1]}: {figures['runs']} runs instead of {keys * bursts} "
        print(warning, end="", file=sys.stderr)
    return figures["cpu_ns"] / (keys * bursts * CHANGES_PER_BURST)


def find_lodash():
    """The command that runs the lodash workload; Debian's package is unpacked for it if need be."""
    if not shutil.which("node"):
        return None
    unpacked = os.path.join(programs.OUT, "lodash")
    places = ["/usr/share/nodejs/lodash", f"{unpacked}/usr/share/nodejs/lodash"]
    if not any(os.path.exists(f"{place}/debounce.js") for place in places):
        os.makedirs(unpacked, exist_ok=True)
        script = "apt-get download -qq node-lodash && dpkg-deb -x node-lodash_*.deb ."
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            subprocess.run(["sh", "-c", script], cwd=unpacked, timeout=60, check=False, **quiet)
        except subprocess.TimeoutExpired:
            pass
    for place in places:
        if os.path.exists(f"{place}/debounce.js"):
            return ["env", f"LODASH={place}", "node", timer("lodash_debounce.mjs")]
    return None


def memory(table):
    keys = 100_000
    theirs, ours = measure.in_turn(
        3,
        lambda: run(reference("reference"), "memory", keys, 1)["bytes"] / keys,
        lambda: run(BENCH, "memory", keys, 1)["bytes"] / keys,
    )
    table.row("memory per pending key, 100k keys", "bytes", theirs, ours, 1.2, LIST)


def idleness(table):
    idle = run(BENCH, "idle", 100_000, 3 if table.quick else 5)
    table.row("wake-ups with 100k known, idle keys", "wake-ups", None, idle["wake_ups"], 0)
    table.row("CPU with 100k known, idle keys", "ns of CPU", None, idle["cpu_ns"], 0)
