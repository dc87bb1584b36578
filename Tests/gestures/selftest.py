# Settle
# SPDX-License-Identifier: Apache-2.0
"""Checks the checker: its parts by the tests beside this file, each check by a mistake that it must find."""

import argparse
import asyncio
import os
import tempfile
import unittest

from house import KINDS
from plants import PLANTS
from world import World

#: Enough for each mistake to happen and to be found on a busy machine; each run ends when it is.
SECONDS = 90
SITES = {
    "drop-last": {"mute"}, "wrong-state": {"dial"}, "lose-journal": {"mute", "dial"}, "wrong-view": {"dial"},
    "reorder": {"dial"}, "invent": {"room"}, "repeat-press": {"dial"}, "wrong-step": {"dial"}, "wrong-value": {"dial"},
    "refused": {"dial"}, "taken": {"dial"},
}


async def find(plant, options):
    """Whether the mistake was found, and what else."""
    options = argparse.Namespace(**vars(options) | {
        "plant": plant, "only": SITES[plant], "seconds": SECONDS, "without": set(KINDS)})
    with tempfile.TemporaryDirectory(prefix="settle-gestures-") as folder:
        world = World(options, folder)
        try:
            await world.run()
        finally:
            await world.close()
        return world.plant.is_found(world.kinds), world.kinds, world.now() - world.start


def main(options):
    suite = unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)), "*_test.py")
    failures = 0 if unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful() else 1
    for plant, (text, kind) in PLANTS.items():
        is_found, kinds, seconds = asyncio.run(find(plant, options))
        failures += not is_found
        print(f"{'found' if is_found else 'NOT FOUND'}  {plant}: {text}: {kind} ({', '.join(sorted(set(kinds)))}; {seconds:.0f} s)", flush=True)
    return 1 if failures else 0
