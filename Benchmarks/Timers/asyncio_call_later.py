# Settle
# SPDX-License-Identifier: Apache-2.0
"""A debounce per key with asyncio: call_later, cancelled and set again by each change.

asyncio_call_later.py KEYS BURSTS: each key changes ten times in each burst and leaves once.
"""

import asyncio
import json
import sys
import time

keys, bursts = int(sys.argv[1]), int(sys.argv[2])
# Long enough that all of a burst falls into one quiet period.
quiet = 10 if keys > 10_000 else 0.1
names = [f"home/room{number % 100}/device{number}/level" for number in range(keys)]
state = 42
for place in range(keys - 1, 0, -1):
    state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
    other = (state >> 33) % (place + 1)
    names[place], names[other] = names[other], names[place]
runs = 0


async def main():
    loop = asyncio.get_running_loop()
    pending = {}
    values = {}

    def fire(name):
        global runs
        runs += 1
        del pending[name]
        del values[name]
        if not pending:
            idle.set()

    start = time.process_time_ns()
    for _ in range(bursts):
        idle = asyncio.Event()
        for number in range(10):
            for name in names:
                handle = pending.get(name)
                if handle:
                    handle.cancel()
                values[name] = number
                pending[name] = loop.call_later(quiet, fire, name)
        await idle.wait()
    print(json.dumps({"cpu_ns": time.process_time_ns() - start, "runs": runs}))


asyncio.run(main())
