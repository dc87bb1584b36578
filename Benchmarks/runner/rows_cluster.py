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

OWNERS, PACED = "at owners", "paced"
RATE = 5000  # changes a second, which each kind accepts
KINDS = {
    ALONE: f"one gateway {ALONE}",
    JOURNAL: f"one gateway {JOURNAL}",
    1: "cluster of 1",
    2: "cluster of 2",
    3: "cluster of 3",
}
SPENT = ("gateways", "engine", "broker", "all")
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
    middle, runs, checks = sizes[1], {}, []

    def run(name, kind, size, **options):
        runs[name] = loaded(kind, size, seconds, checks, **options)
        table.tick()

    for size in sizes:
        for kind in KINDS:
            run((kind, size), kind, size)
    run((OWNERS, middle), 3, middle, to_owners=True)
    for kind in KINDS:
        run((PACED, kind), kind, middle, rate=RATE)
    against_journal(table, runs, middle)
    at_a_rate(table, runs, middle)
    passing_on(table, runs, middle)
    growth(table, runs, sizes)
    for name, unit in (("accepted values that did not arrive", "keys"),
                       ("changes that were not accepted", "changes"),
                       ("commands older than the one before", "commands")):
        table.row(name, unit, None, [check[name] for check in checks], 0)
    start(table, sizes)
    filters(table)


def loaded(kind, size, seconds, checks, **options):
    """The figures of one fleet under load."""
    with Fleet(kind, size) as fleet:
        load = FleetLoad(fleet, **options)
        load.run(1)
        published, spent, begin = fleet.counter("published"), fleet.cpu(), time.monotonic()
        accepted = load.run(seconds)
        after, lasted = fleet.cpu(), time.monotonic() - begin
        published = fleet.counter("published") - published
        spent = {name: (after[name] - spent[name]) / 1000 / accepted for name in after}
        memory = fleet.resident()
        checks.append(
            {
                "accepted values that did not arrive": load.finish(),
                "changes that were not accepted": load.refused,
                "commands older than the one before": fleet.witness.older,
            }
        )
        return {
            "rate": accepted / lasted,
            **spent,
            "all": sum(spent.values()),
            "sent": published / accepted * 1000,
            "gateways' memory": memory["gateways"] / 1e6,
            "engine's memory": memory["engine"] / 1e6,
            "passed": load.passed,
        }


def against_journal(table, runs, size):
    """Each kind of fleet in ratio to one gateway with the journal, at one number of keys."""
    names = {**KINDS, OWNERS: "cluster of 3, changes sent to owners"}
    for kind, name in names.items():
        run = runs[kind, size]
        share = f", {run['passed']:.0%} passed on" if kind in (2, 3) else ""
        title = f"{name}, {size:,} keys{share}"
        compare(table, title, kind, runs[JOURNAL, size], run, ("rate", *SPENT))


def at_a_rate(table, runs, size):
    """The same while all accept the same changes, so that all send as many commands."""
    for kind, name in KINDS.items():
        title = f"{name}, {RATE:,} changes/s, {size:,} keys"
        compare(table, title, kind, runs[PACED, JOURNAL], runs[PACED, kind], (*SPENT, "sent"))


def compare(table, name, kind, base, run, figures):
    if kind == JOURNAL:
        return
    for figure in figures:
        title, unit = FIGURES[figure]
        if run[figure]:
            table.row(f"{name}: {title}", unit, base[figure] or None, run[figure],
                      against=KINDS[JOURNAL])


def passing_on(table, runs, size):
    """What one change more costs that is sent to another member than the owner."""
    spread, direct = runs[3, size], runs[OWNERS, size]
    share = spread["passed"] - direct["passed"]
    for figure in ("gateways", "engine", "all"):
        title, unit = FIGURES[figure]
        cost = (spread[figure] - direct[figure]) / share
        table.row(f"passing a change on, {size:,} keys: {title}", "us per change passed on",
                  direct[figure], cost, against="a change at its owner")


def growth(table, runs, sizes):
    for kind, name in KINDS.items():
        for figure, (title, unit) in FIGURES.items():
            if "engine" in figure and kind in (ALONE, JOURNAL):
                continue
            points = [(size, runs[kind, size][figure]) for size in sizes]
            table.curve(f"{name}, by keys: {title}", unit, points, "memory" in figure)


def start(table, sizes):
    """From the start of three gateways until every partition is driven, as a command proves."""
    titles = {
        "first": "first start until each partition is driven",
        "driven": "start until each partition is driven",
        "balanced": "start until all members drive as many",
    }
    points = {name: [] for name in titles}
    for size in sizes:
        with Fleet(3, size) as fleet:
            points["first"].append((size, fleet.seconds_to_driven * 1000))
            fleet.restart()
            points["driven"].append((size, fleet.seconds_to_driven * 1000))
            points["balanced"].append((size, fleet.seconds_to_balanced * 1000))
    for name, title in titles.items():
        table.curve(f"cluster of 3, {title}, by devices", "ms", points[name], True)


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
