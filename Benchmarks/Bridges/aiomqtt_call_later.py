# Settle
# SPDX-License-Identifier: Apache-2.0
"""The bridge that asyncio suggests: aiomqtt, and call_later cancelled and set again per message.

aiomqtt_call_later.py PORT QUIET_MS QOS: what comes on in/KEY goes to out/KEY once it was quiet.
"""

import asyncio
import sys

import aiomqtt

port, quiet, qos = int(sys.argv[1]), int(sys.argv[2]) / 1000, int(sys.argv[3])


async def main():
    loop = asyncio.get_running_loop()
    pending = {}
    tasks = set()
    async with aiomqtt.Client("127.0.0.1", port, max_queued_incoming_messages=0) as client:

        def fire(key, value):
            pending.pop(key, None)
            task = loop.create_task(client.publish("out/" + key, value, qos=qos))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        await client.subscribe("in/#", qos=qos)
        print("ready", flush=True)
        async for message in client.messages:
            key = str(message.topic)[3:]
            handle = pending.get(key)
            if handle:
                handle.cancel()
            pending[key] = loop.call_later(quiet, fire, key, message.payload)


asyncio.run(main())
