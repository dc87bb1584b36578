# Settle
# SPDX-License-Identifier: Apache-2.0
"""The cost of a message from the broker."""

import subprocess
import time

from . import measure, programs
from .broker import Broker
from .gateway import DONE, END, END_DEVICE, Gateway, devices
from .programs import output, reference

KEYS = 1000
BEFORE, AFTER = "settle/dev", "/level/set"


def flood(port, total, qos, keys=KEYS, before=BEFORE, after=AFTER, end=END, done=DONE):
    """Sends messages and waits until the receiver has handled the last."""
    arguments = [port, total, keys, qos, before, after, end, done]
    return output([reference("flood"), *map(str, arguments)])


def subscriber(port, mode, qos, prefix=(), **options):
    """A started C subscriber that is subscribed."""
    command = [*prefix, reference("subscriber"), mode, str(port), "settle/+/+/set", str(qos)]
    child = programs.start([*command, END, DONE], stdout=subprocess.PIPE, **options)
    programs.ready(child)
    return child


def measure_all(table):
    turns, total = (3, 50_000) if table.quick else (7, 100_000)
    for qos in (0, 1):
        counting, settling, ours = measure.in_turn(
            turns,
            lambda: subscriber_cpu("count", total, qos),
            lambda: subscriber_cpu("settle", total, qos),
            lambda: gateway_cpu(total, qos),
        )
        figure = f"inbound message at full flood, QoS {qos}, 1k keys"
        table.row(figure, "ns of CPU", counting, ours, 1.3, "C libmosquitto subscriber, counting")
        table.row(
            figure + ", and a bridge in C",
            "ns of CPU",
            settling,
            ours,
            1.0,
            "C libmosquitto bridge with a queue",
        )
    if not measure.has_valgrind():
        table.skip("instructions per inbound message", "valgrind is not installed")
        return
    for qos in (0, 1):
        table.row(
            f"inbound message to a settled command, QoS {qos}",
            "instructions",
            subscriber_instructions(qos),
            gateway_instructions(qos),
            1.6,
            "C subscriber with a hash lookup",
        )


def subscriber_cpu(mode, total, qos):
    """CPU nanoseconds per message of a C subscriber, with all its effects."""
    with Broker() as broker:
        child = subscriber(broker.port, mode, qos, stderr=subprocess.DEVNULL)
        try:
            begin = programs.cpu_of(child)
            flood(broker.port, total, qos)
            time.sleep(0.7)
            return (programs.cpu_of(child) - begin) / total
        finally:
            programs.end(child)


def gateway_cpu(total, qos):
    """The same of the gateway, which also sends every value and publishes every target."""
    lines = [*devices(KEYS, max_wait="none"), END_DEVICE]
    with Broker() as broker, Gateway(broker.port, lines) as gateway:
        gateway.connected()
        begin = programs.cpu_of(gateway.process)
        flood(broker.port, total, qos)
        time.sleep(0.7)
        return (programs.cpu_of(gateway.process) - begin) / total


def subscriber_instructions(qos, mode="lookup"):
    """Instructions per message, two run lengths subtracted."""

    def count(changes):
        with Broker() as broker:
            child = subscriber(
                broker.port, mode, qos, measure.CALLGRIND, stderr=subprocess.PIPE
            )
            flood(broker.port, changes * KEYS, qos)
            child.terminate()
            _, errors = child.communicate(timeout=120)
            programs.end(child)
            return measure.counted(errors.decode())

    return measure.per_unit(count, 5, 25, KEYS)


def gateway_instructions(qos, prefix=measure.CALLGRIND):
    """The same of the gateway.

    Both lengths send the same values and targets, since the clock is slowed; what is left is what
    one more message costs, from the socket to the pending value.
    """
    lines = [*devices(KEYS), END_DEVICE]
    environment = {
        "SWIFT_DETERMINISTIC_HASHING": "1",
        "LD_PRELOAD": reference("slowclock.so"),
    }

    def count(changes):
        with Broker() as broker:
            with Gateway(broker.port, lines, "", prefix, environment) as gateway:
                gateway.connected()
                flood(broker.port, changes * KEYS, qos)
                _, _, log = gateway.terminate()
                return measure.counted(log)

    return measure.per_unit(count, 5, 25, KEYS)
