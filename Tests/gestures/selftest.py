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

#: Enough for the rarest gesture to be made many times on a busy machine; each run ends when its mistake is found.
SECONDS = 600
#: How many run at a time.
TOGETHER = 4
#: Where each mistake can happen.
SITES = {
    "drop-last": {"mute"}, "wrong-state": {"dial"}, "lose-journal": {"mute", "dial"}, "wrong-view": {"dial"},
    "reorder": {"dial"}, "invent": {"room"}, "repeat-press": {"dial"}, "wrong-step": {"dial"}, "wrong-value": {"dial"},
    "refused": {"dial"}, "taken": {"dial"},
}


async def find(plant, options, turn):
    """Whether the mistake was found."""
    options = argparse.Namespace(**vars(options) | {
        "plant": plant, "only": SITES[plant], "seconds": SECONDS, "without": set(KINDS)})
    text, kind = PLANTS[plant]
    async with turn:
        with tempfile.TemporaryDirectory(prefix="settle-gestures-") as folder:
            world = World(options, folder)
            try:
                await world.run()
            finally:
                await world.close()
    is_found, kinds = world.plant.is_found(world.kinds), ", ".join(sorted(set(world.kinds)))
    print(f"{'found' if is_found else 'NOT FOUND'}  {plant}: {text}: {kind} ({kinds}; {world.now() - world.start:.0f} s)", flush=True)
    return is_found


async def find_all(options):
    turn = asyncio.Semaphore(TOGETHER)
    return all(await asyncio.gather(*(find(plant, options, turn) for plant in PLANTS)))


def main(options):
    suite = unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)), "*_test.py")
    is_sound = unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful()
    is_found = asyncio.run(find_all(options))
    if is_sound and is_found:
        print(f"gestures: all {len(PLANTS)} planted mistakes were found")
    return 0 if is_sound and is_found else 1
