# Settle
# SPDX-License-Identifier: Apache-2.0
"""What a change costs in a cluster, against one gateway with the SQLite journal.

Total throughput on one machine cannot grow with the members, because they share its processors. The
figures are therefore CPU per change, and where it is spent.
"""

import statistics
import time
from functools import partial

from . import measure, programs
from .engine import NATS_SERVER
from .fleet import ALONE, JOURNAL, PROBES, Fleet
from .fleet_load import FleetLoad
from .rows_inbound import flood

OWNERS = "at owners"
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
    few, middle, many = sizes
    turns, seconds = (1, 2) if table.quick else (3, 4)
    checks = []

    def run(kind, size, **options):
        result = loaded(kind, size, seconds, checks, **options)
        table.tick()
        return result

    sides = [partial(run, kind, middle) for kind in KINDS]
    sides.append(partial(run, 3, middle, to_owners=True))
    full = dict(zip((*KINDS, OWNERS), measure.in_turn(turns, *sides)))
    sides = [partial(run, kind, middle, rate=RATE) for kind in KINDS]
    paced = dict(zip(KINDS, measure.in_turn(turns, *sides)))
    against_journal(table, full, middle)
    at_a_rate(table, paced, middle)
    passing_on(table, full, middle)
    for kind in KINDS:
        growth(table, kind, {few: [run(kind, few)], middle: full[kind], many: [run(kind, many)]})
    for name, unit in (
        ("accepted values that did not arrive", "keys"),
        ("changes that were not accepted", "changes"),
        ("commands older than the one before", "commands"),
    ):
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


def values(runs, figure):
    return [run[figure] for run in runs]


def against_journal(table, runs, size):
    """Each kind of fleet in ratio to one gateway with the journal, at one number of keys."""
    names = {**KINDS, OWNERS: "cluster of 3, changes sent to owners"}
    for kind, name in names.items():
        share = f", {runs[kind][0]['passed']:.0%} passed on" if kind in (2, 3) else ""
        compare(table, f"{name}, {size:,} keys{share}", kind, runs, ("rate", *SPENT, "sent"))


def at_a_rate(table, runs, size):
    """The same while all accept the same changes, so that all send as many commands."""
    for kind, name in KINDS.items():
        compare(table, f"{name}, {RATE:,} changes/s, {size:,} keys", kind, runs, (*SPENT, "sent"))


def compare(table, name, kind, runs, figures):
    for figure in figures:
        title, unit = FIGURES[figure]
        base, ours = values(runs[JOURNAL], figure), values(runs[kind], figure)
        if kind != JOURNAL and any(ours):
            reference = base if any(base) else None
            table.row(f"{name}: {title}", unit, reference, ours, against=KINDS[JOURNAL])


def passing_on(table, runs, size):
    """What one change more costs that is sent to another member than the owner."""
    for figure in ("gateways", "engine", "all"):
        title, unit = FIGURES[figure]
        direct = values(runs[OWNERS], figure)
        costs = [
            (spread - own) / runs[3][0]["passed"]
            for spread, own in zip(values(runs[3], figure), direct)
        ]
        table.row(
            f"passing a change on, {size:,} keys: {title}",
            f"{unit} passed on",
            direct,
            costs,
            against="a change at its owner",
        )


def growth(table, kind, runs):
    """The figures of a kind of fleet, by the number of keys."""
    for figure, (title, unit) in FIGURES.items():
        points = [(size, statistics.median(values(runs[size], figure))) for size in runs]
        if any(value for _, value in points):
            table.curve(f"{KINDS[kind]}, by keys: {title}", unit, points, "memory" in figure)


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
    single, member = measure.in_turn(
        1 if table.quick else 3,
        lambda: at_broker(ALONE, devices, table.quick),
        lambda: at_broker(1, devices, table.quick),
    )
    units = ("MB resident", "us of CPU", "us of CPU")
    figures = ("memory", "report of a device", "change on a command topic")
    for place, (figure, unit) in enumerate(zip(figures, units)):
        table.row(
            f"mosquitto, {devices:,} devices that report: {figure}",
            unit,
            [run[place] for run in single],
            [run[place] for run in member],
            against="one gateway's wildcard filters",
        )


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
