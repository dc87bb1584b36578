# Settle
# SPDX-License-Identifier: Apache-2.0
"""Ways of measuring."""

import os
import re
import shutil
import subprocess
import sys

from . import programs

CALLGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")


def has_valgrind():
    return shutil.which("valgrind") is not None


def in_turn(rounds, *measurements):
    """The results of each measurement; they take turns, so that all have the same conditions."""
    results = [tuple(measure() for measure in measurements) for _ in range(rounds)]
    return tuple(list(side) for side in zip(*results))


def counted(errors):
    """The instructions that callgrind reports on standard error."""
    found = re.search(r"Collected : (\d+)", errors)
    return int(found.group(1)) if found else sys.exit(f"bench: callgrind said\n{errors}")


def counting_environment(**more):
    """The language's own hash seeds are fixed, so that counts repeat."""
    return dict(os.environ, SWIFT_DETERMINISTIC_HASHING="1", **more)


def instructions(command, **more):
    """Instructions of a whole process."""
    child = programs.start(
        [*CALLGRIND, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=counting_environment(**more),
    )
    _, errors = child.communicate(timeout=300)
    programs.end(child)
    if child.returncode:
        sys.exit(f"bench: {' '.join(command)} ended with {child.returncode}")
    return counted(errors.decode())


def per_unit(measure, short, long, units):
    """The difference of two run lengths, in which start and setup cancel out.

    `measure` takes a run length and counts; `units` are in one step of it.
    """
    return (measure(long) - measure(short)) / ((long - short) * units)
