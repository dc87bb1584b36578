# Settle
# SPDX-License-Identifier: Apache-2.0
"""What a change costs in a cluster, against one gateway with the SQLite journal.

Total throughput on one machine cannot grow with the members, because they share its processors. The
figures are therefore CPU per change, and where it is spent.
"""

import time

from . import programs
from .engine import NATS_SERVER
from .fleet import ALONE, JOURNAL, PROBES, Fleet
from .fleet_load import FleetLoad
from .rows_inbound import flood

OWNERS = "3, at owners"
KINDS = {
    ALONE: f"one gateway {ALONE}",
    JOURNAL: f"one gateway {JOURNAL}",
    1: "cluster of 1",
    2: "cluster of 2",
    3: "cluster of 3",
}
# The figure of a run, and how its table calls it.
FIGURES = {
    "rate": ("changes accepted", "changes/s"),
    "gateways": ("CPU of gateways", "us per change"),
    "engine": ("CPU of the engine", "us per change"),
    "broker": ("CPU of mosquitto", "us per change"),
    "all": ("CPU of all three", "us per change"),
    "sent": ("commands sent", "per 1,000 changes"),
    "gateways' memory": ("memory of gateways", "MB resident"),
    "engine's memory": ("memory of the engine", "MB resident"),
}


def measure_all(table):
    if NATS_SERVER is None:
        table.skip("cluster", "nats-server is not installed")
        return
    sizes = (100, 1000, 10_000) if table.quick else (1000, 10_000, 100_000)
    seconds = 2 if table.quick else 8
    missing, older, runs = [], [], {}
    for size in sizes:
        for kind in KINDS:
            runs[kind, size] = loaded(table, kind, size, seconds, missing, older)
    middle = sizes[1]
    runs[OWNERS, middle] = loaded(table, 3, middle, seconds, missing, older, to_owners=True)
    against_journal(table, runs, middle)
    passing_on(table, runs, middle)
    growth(table, runs, sizes)
    table.row("accepted values that did not arrive", "keys", None, missing, 0)
    table.row("commands older than the one before", "commands", None, older, 0)
    start(table, runs, sizes)
    filters(table)


def loaded(table, kind, size, seconds, missing, older, to_owners=False):
    """The figures of one fleet at full load."""
    with Fleet(kind, size) as fleet:
        load = FleetLoad(fleet, to_owners)
        load.run(1)
        published, spent, begin = fleet.counter("published"), fleet.cpu(), time.monotonic()
        accepted = load.run(seconds)
        after, lasted = fleet.cpu(), time.monotonic() - begin
        published = fleet.counter("published") - published
        spent = {name: (after[name] - spent[name]) / 1000 / accepted for name in after}
        memory = fleet.resident()
        missing.append(load.finish() + load.refused)
        older.append(fleet.witness.older)
        table.tick()
        return {
            "rate": accepted / lasted,
            **spent,
            "all": sum(spent.values()),
            "sent": published / accepted * 1000,
            "gateways' memory": memory["gateways"] / 1e6,
            "engine's memory": memory["engine"] / 1e6,
            "passed": load.passed,
            "driven": fleet.seconds_to_driven,
            "balanced": fleet.seconds_to_balanced,
        }


def against_journal(table, runs, size):
    """Each kind of fleet in ratio to one gateway with the journal, at one number of keys."""
    base = runs[JOURNAL, size]
    names = {**KINDS, OWNERS: "cluster of 3, changes sent to owners"}
    for kind, name in names.items():
        if kind == JOURNAL:
            continue
        run = runs[kind, size]
        share = f", {run['passed']:.0%} passed on" if kind in (2, 3) else ""
        for figure in ("rate", "gateways", "engine", "broker", "all"):
            title, unit = FIGURES[figure]
            if figure == "engine" and kind == ALONE:
                continue
            reference = base[figure] or None
            table.row(f"{name}, {size:,} keys{share}: {title}", unit, reference, run[figure],
                      against=KINDS[JOURNAL])


def passing_on(table, runs, size):
    """What one change more costs that is sent to another member than the owner."""
    spread, direct = runs[3, size], runs[OWNERS, size]
    share = spread["passed"] - direct["passed"]
    for figure in ("gateways", "engine", "all"):
        title, unit = FIGURES[figure]
        cost = max(0, spread[figure] - direct[figure]) / share
        table.row(f"passing a change on, {size:,} keys: {title}", "us per change passed on",
                  direct[figure], cost, against="a change at its owner")


def growth(table, runs, sizes):
    for kind, name in KINDS.items():
        for figure, (title, unit) in FIGURES.items():
            if "engine" in figure and kind in (ALONE, JOURNAL):
                continue
            points = [(size, runs[kind, size][figure]) for size in sizes]
            table.curve(f"{name}, by keys: {title}", unit, points, "memory" in figure)


def start(table, runs, sizes):
    """From the start of three gateways until every partition is driven, as a command proves."""
    titles = {"driven": "each partition is driven", "balanced": "all drive as many"}
    for figure, title in titles.items():
        points = [(size, runs[3, size][figure] * 1000) for size in sizes]
        table.curve(f"cluster of 3, start until {title}, by devices", "ms", points, True)


def filters(table):
    """What the filters of each device cost the broker, instead of wildcards."""
    devices = 1000 if table.quick else 10_000
    single, member = (at_broker(kind, devices, table.quick) for kind in (ALONE, 1))
    units = ("MB resident", "us of CPU", "us of CPU")
    figures = ("memory", "report of a device", "change on a command topic")
    for figure, unit, theirs, ours in zip(figures, units, single, member):
        table.row(f"mosquitto, {devices:,} devices that report: {figure}", unit, theirs, ours,
                  against="one gateway's wildcard filters")


def at_broker(kind, devices, is_quick):
    """Bytes of the broker with the subscriptions, and its CPU per message."""
    total = 20_000 if is_quick else 100_000
    probe = PROBES[0]
    end, done = f"settle/probe-{probe}/level/set", f"probes/{probe}/level/set"
    with Fleet(kind, devices, has_state=True) as fleet:
        broker = fleet.broker.process
        quiet(broker)
        memory = (programs.resident_of(broker)[0] - fleet.idle_broker) / 1e6
        costs = []
        for before, after in (("lamps/", "/level"), ("settle/lamp-", "/level/set")):
            spent = programs.cpu_of(broker)
            flood(fleet.broker.port, total, 1, devices, before, after, end, done)
            quiet(broker)
            costs.append((programs.cpu_of(broker) - spent) / 1000 / total)
        return memory, *costs


def quiet(process, patience=60):
    """Waits until a process does next to nothing."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        spent = programs.cpu_of(process)
        time.sleep(0.5)
        if programs.cpu_of(process) - spent < 5e6:
            return
