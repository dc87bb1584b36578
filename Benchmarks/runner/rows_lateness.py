# Settle
# SPDX-License-Identifier: Apache-2.0
"""The lateness of values in the gateway's loop, against a bare loop in C."""

from . import measure
from .programs import BENCH, output, reference


def measure_all(table):
    turns, length = (3, 1000) if table.quick else (5, 1500)
    for changes, name in ((1, "idle"), (1000, "1M changes/s")):
        arguments = [str(changes), str(length)]
        theirs, ours = measure.in_turn(
            turns,
            lambda: output([reference("lateness"), *arguments]),
            lambda: output([BENCH, "lateness", *arguments]),
        )
        for figure in ("p50", "p99"):
            table.row(
                f"lateness of the firing, {name}, {figure}",
                "us",
                [run[figure] / 1000 for run in theirs],
                [run[figure] / 1000 for run in ours],
                1.5,
                "bare C timerfd loop",
            )
        early = sum(run["early"] for run in ours)
        table.row(f"early firings, {name}", "firings", None, early, 0)
        table.row(
            f"CPU of the loop, {name}",
            "ms/s",
            [run["cpu_ns"] / length / 1000 for run in theirs],
            [run["cpu_ns"] / length / 1000 for run in ours],
            against="bare C timerfd loop",
        )
