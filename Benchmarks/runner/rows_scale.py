# Settle
# SPDX-License-Identifier: Apache-2.0
"""How cost, memory, start and flush grow with the number of keys, devices and routes."""

import time

from . import programs
from .broker import Broker
from .gateway import Gateway, fleet, lamps, report_fleet
from .programs import BENCH, output
from .rows_inbound import flood


def measure_all(table):
    core(table)
    devices(table)
    templates(table)
    routes(table)


def core(table):
    """Keys pending in the queue."""
    sizes = (1000, 10_000, 100_000) if table.quick else (10_000, 100_000, 1_000_000)
    figures = {"enqueue": [], "flush": [], "memory": []}
    for keys in sizes:
        rounds = 2_000_000 // keys or 1
        for workload, points in figures.items():
            run = min(
                (
                    output([BENCH, workload, str(keys), str(rounds)])
                    for _ in range(1 if workload == "memory" else 3)
                ),
                key=lambda run: run.get("cpu_ns", 0),
            )
            per = {"enqueue": rounds, "flush": rounds, "memory": 1}[workload]
            value = run["bytes"] if workload == "memory" else run["cpu_ns"]
            points.append((keys, value / per / keys))
    table.curve("core: enqueue, by keys pending", "ns of CPU", figures["enqueue"])
    table.curve("core: flush, by keys pending", "ns of CPU per key", figures["flush"])
    table.curve("core: memory, by keys pending", "bytes per key", figures["memory"])


def devices(table):
    """Devices in the gateway, three properties and two topics each."""
    sizes = (10, 100, 1000) if table.quick else (100, 1000, 10_000)
    names = ("start", "subscribed", "memory", "change", "flush")
    figures = {name: [] for name in names}
    for count in sizes:
        for name, value in zip(names, gateway_with(count)):
            figures[name].append((count, value))
    table.curve("settled: start to ready, by devices", "ms", figures["start"], True)
    table.curve("settled: start to subscribed, by devices", "ms", figures["subscribed"], True)
    table.curve("settled: resident memory, by devices", "MB", figures["memory"], True)
    table.curve("settled: change over the socket, by devices", "ns of CPU", figures["change"])
    table.curve("settled: shutdown flush, by devices", "us per command", figures["flush"])


def gateway_with(count):
    keys = [f"lamp{number}/brightness" for number in range(count)]
    changes = 100_000
    # In steps, so that neighbours in time are not neighbours in memory.
    lines = [
        f'{{"key":"{keys[number * 7919 % count]}","set":{number % 254}}}\n'
        for number in range(changes)
    ]
    settings = "policy: {integer: {delay: 1h, max_wait: none}}\nshutdown: {timeout: 5m}\nttl: 2h\n"
    begin = time.monotonic()
    with Broker() as broker, Gateway(broker.port, lamps(count), settings) as gateway:
        gateway.connected()
        subscribed = time.monotonic() - begin
        memory, _ = programs.resident_of(gateway.process)
        spent = programs.cpu_of(gateway.process)
        gateway.change("".join(lines).encode(), changes)
        spent = programs.cpu_of(gateway.process) - spent
        seconds, _, _ = gateway.terminate()
        return (
            gateway.seconds_to_ready * 1000,
            subscribed * 1000,
            memory / 1e6,
            spent / changes,
            seconds * 1e6 / count,
        )


def templates(table):
    """Devices of one template, four properties each, before and after each has reported them."""
    sizes = (10, 100, 1000) if table.quick else (1000, 10_000, 100_000)
    names = ("start", "memory", "reported")
    figures = {name: [] for name in names}
    for count in sizes:
        least = fleet_of(1)
        most = fleet_of(count)
        figures["start"].append((count, most[0]))
        for name, few, many in zip(names[1:], least[1:], most[1:]):
            figures[name].append((count, max(many - few, 0) / count))
    table.curve("settled: start to ready, by devices of a template", "ms", figures["start"], True)
    table.curve(
        "settled: memory, by devices of a template", "bytes per device", figures["memory"]
    )
    table.curve(
        "settled: memory, by devices of a template that reported",
        "bytes per device",
        figures["reported"],
    )


def fleet_of(count):
    """Milliseconds until so many devices are ready, and bytes before and after their reports."""
    with Broker() as broker, Gateway(broker.port, fleet(count)) as gateway:
        gateway.connected()
        before, _ = programs.resident_of(gateway.process)
        report_fleet(broker.port, count)
        gateway.shows(f"fleet-{count}/target", "20.5")
        after, _ = programs.resident_of(gateway.process)
        return gateway.seconds_to_ready * 1000, before, after


def routes(table):
    """Routes with wildcards, one of which matches a message; each gets its share."""
    sizes = (1, 10, 100)
    cost, start = [], []
    total = 30_000 if table.quick else 100_000
    for count in sizes:
        lines = [
            f"  - {{from: 'in{number}/+/level', to: 'out{number}/+/level',"
            " policy: {delay: 300ms, max_wait: none}}\n"
            for number in range(count)
        ]
        with Broker() as broker:
            with Gateway(broker.port, (), "routes:\n" + "".join(lines)) as gateway:
                gateway.connected()
                begin = programs.cpu_of(gateway.process)
                end, done = "in0/end/level", "out0/end/level"
                flood(broker.port, total, 1, count, "in", "/dev/level", end, done)
                time.sleep(0.3)
                cost.append((count, (programs.cpu_of(gateway.process) - begin) / total))
                start.append((count, gateway.seconds_to_ready * 1000))
    table.curve("settled: routed message, by wildcard routes", "ns of CPU", cost)
    table.curve("settled: start to ready, by wildcard routes", "ms", start, True)
