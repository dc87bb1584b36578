# Settle
# SPDX-License-Identifier: Apache-2.0
"""What happens to the gateway: reloads, orderly ends, kills, and lost connections."""

import asyncio

from model import Finding


class Faults:
    def __init__(self, world, random):
        self.world, self.random = world, random

    async def run(self):
        kinds = ["reload", "reload", "kill", "kill", "terminate"]
        if "cuts" not in self.world.options.without:
            kinds += ["cut", "cut", "cut"]
        while not self.world.is_over:
            pause, kind = self.random.uniform(2, 12), self.random.choice(kinds)
            end = self.world.now() + pause
            while self.world.now() < end:
                if self.world.is_over:
                    return
                if self.world.gateway.process.poll() is not None:
                    await self.revive()
                await asyncio.sleep(0.1)
            if self.world.plant.needs_kills:
                kind = "kill"
                await self.until_someone_waits()
            await getattr(self, kind)()

    async def until_someone_waits(self):
        """Waits for a value that was accepted and not sent, and that nobody will replace."""
        while not self.world.is_over:
            for person in self.world.people:
                answer = await self.world.gateway.ask({"pending": f"{next(iter(person.devices))}/*"})
                if person.is_waiting and answer and answer["pending"]:
                    return
            await asyncio.sleep(0.01)

    async def revive(self):
        """It has ended by itself."""
        gateway = self.world.gateway
        gateway.is_ready = False
        self.finds("crash", f"the gateway ended with {gateway.process.returncode}:\n{gateway.log_end(1500)}")
        self.restarts(is_kill=True)
        await gateway.start()

    async def reload(self):
        by_signal = self.random.random() < 0.5
        self.world.figures.signals += by_signal
        self.world.figures.reloads += not by_signal
        problem = await self.world.gateway.reload(by_signal)
        if problem:
            self.finds("reload", problem)

    async def kill(self):
        world, pause = self.world, self.random.choice([0, 0, 0.5, 2])
        world.figures.kills += 1
        await world.gateway.kill()
        self.restarts(is_kill=True)
        world.plant.after_kill(world.gateway.folder)
        await asyncio.sleep(pause)
        await world.gateway.start()

    async def terminate(self):
        self.world.figures.terminations += 1
        await self.stop_in_order()
        self.restarts(is_kill=False)
        await self.world.gateway.start()

    async def stop_in_order(self):
        code = await self.world.gateway.terminate()
        # What the journal keeps counts as sent; a press that could not leave does not, nor does a repetition.
        if code not in (0, 1) or (code == 1 and self.lists_lost_values()):
            self.finds("exit", f"the gateway ended with {code}:\n{self.world.gateway.log_end(1500)}")

    def lists_lost_values(self):
        """Whether a key of the last report is not kept in the journal, and its newest value was never acknowledged."""
        unsent, _, kept = self.world.gateway.log_end().rpartition("not sent: ")[2].partition("kept in the journal: ")
        values = {f"{name}/{part}" for name, device in self.world.simulated.items()
                  for part, what in device.device.properties.items() if what.kind != "action"}
        repeated = {key for person in self.world.people for key, phase in person.phases.items() if phase == "sent"}
        return values & (set(unsent.replace(";", " ").split()) - set(kept.split()) - repeated)

    def restarts(self, is_kill):
        for person in self.world.people:
            person.restart(is_kill)

    async def cut(self):
        """Acknowledgements are lost with the connection; perhaps messages before it, too."""
        self.world.figures.cuts += 1
        if self.random.random() < 0.4:
            self.world.broker.swallow()
            await asyncio.sleep(self.random.uniform(0.05, 1.5))
        self.world.broker.cut()

    def finds(self, kind, text):
        self.world.finds(self.world.people[0], Finding(kind, text))
