# Settle
# SPDX-License-Identifier: Apache-2.0
"""The broker, the devices, the gateway, and what they do to each other."""

import asyncio
import json
import os
import random
import sys
from collections import Counter
from dataclasses import asdict, dataclass

from broker import Broker
from devices import simulate
from faults import Faults
from gateway import Gateway
from house import GROUP_TOPICS, sites
from intents import ACCEPTED, REJECTED, rejection
from model import Finding
from order import Message
from people import Person
from plants import Plant
from scripts import GESTURES, Hand

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, ".ci"))
from loopback import reserve_port  # noqa: E402

#: An acknowledgement that takes longer, in seconds, is counted as late.
LATE = 0.5
#: How many failures are printed in full.
MOST_STORIES = 5
#: What happens to the gateway and the devices, as it is counted, and the kind without which it does not.
FAULTS = {
    "kills": None, "terminations": None, "reloads": None, "signals": None, "late_acknowledgements": None,
    "travels": None, "turns": None, "cuts": "cuts", "losses": "cuts", "repeats": "cuts",
}
#: In so many seconds every gesture is made, and everything of the above happens.
ALL_HAPPENS = 600


@dataclass
class Figures:
    gestures: int = 0
    values: int = 0
    messages: int = 0
    kills: int = 0
    terminations: int = 0
    #: On request, and by a signal.
    reloads: int = 0
    signals: int = 0
    #: Connections; messages of the gateway that were lost with one, and changes that were delivered again after it.
    cuts: int = 0
    losses: int = 0
    repeats: int = 0
    late_acknowledgements: int = 0
    #: Of covers; how often one was sent elsewhere on its way.
    travels: int = 0
    turns: int = 0
    checks: int = 0
    excused: int = 0
    wrong: int = 0

    def __str__(self):
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in asdict(self).items())


class World:
    def __init__(self, options, folder):
        self.options, self.loop, self.figures = options, asyncio.get_running_loop(), Figures()
        self.is_over, self.numbers, self.kinds = False, 0, []
        self.plant = Plant(options.plant, self)
        self.acknowledgements, self.random = self.draw("broker"), self.draw("devices")
        self.sites = [site for site in sites(options.without) if not options.only or site.name in options.only]
        self.broker = Broker(self.hear, self.seen, self.repeated, self.acknowledgement_delay)
        devices = [device for site in self.sites for device in site.devices]
        self.simulated = {device.name: simulate(device, self) for device in devices}
        self.command_topics, self.request_topics = {}, {}
        for device in self.simulated.values():
            for topic in device.command_topics():
                self.command_topics.setdefault(topic, set()).add(device.device.name)
            for topic in device.request_topics():
                self.request_topics[topic] = device
        self.add_groups()
        self.people = [Person(self, site, Hand(site, self.draw(site.name), options.without)) for site in self.sites]
        self.person_of = {name: person for person in self.people for name in [*person.devices, *person.site.groups]}
        #: Identifier -> change by MQTT; key -> changes without one, the oldest first.
        self.by_id, self.by_key = {}, {}
        self.holders, (self.port, http_port) = zip(reserve_port(), reserve_port())
        self.gateway = Gateway(options.program, folder, self.port, http_port, self.sites, self.on_event)
        self.start = self.now()

    def draw(self, name):
        """Random numbers that depend on the seed and a name alone."""
        return random.Random(f"{self.options.seed}/{name}")

    def add_groups(self):
        for site in self.sites:
            for group, members in site.groups.items():
                if group in GROUP_TOPICS:
                    self.command_topics[f"{GROUP_TOPICS[group]}/set"] = set(members)

    def now(self):
        return self.loop.time()

    def later(self, delay, function, *arguments):
        self.loop.call_later(delay, function, *arguments)

    def number(self):
        self.numbers += 1
        return self.numbers

    def epoch(self):
        """Changes with each start of the gateway, and with each of its connections."""
        return self.gateway.generation, self.broker.connections

    # Between the gateway, the broker and the devices.

    def acknowledgement_delay(self, topic):
        if topic not in self.command_topics:
            return self.acknowledgements.uniform(0, 0.05)
        drawn = self.acknowledgements.random()
        if drawn < 0.5:
            delay = self.acknowledgements.uniform(0, 0.03)
        elif drawn < 0.8:
            delay = self.acknowledgements.uniform(0.03, LATE)
        elif drawn < 0.95 or "cuts" in self.options.without:
            delay = self.acknowledgements.uniform(LATE, 2.5)
        else:
            # Longer than the gateway waits.
            delay = self.acknowledgements.uniform(2.5, 5)
        self.figures.late_acknowledgements += delay > LATE
        return delay

    def seen(self, topic, payload, is_kept):
        names = self.command_topics.get(topic)
        if not names:
            return
        self.figures.messages += 1
        self.figures.losses += not is_kept
        for name in names:
            values = self.simulated[name].read(topic, payload.decode())
            self.plant.note(Message(self.now(), name, topic, values, is_kept), self.note)

    def note(self, message):
        self.person_of[message.device].hears(message)

    def hear(self, topic, payload):
        if topic in self.request_topics:
            self.request_topics[topic].report()
        for name in sorted(self.command_topics.get(topic, ())):
            device = self.simulated[name]
            self.plant.take(device, device.read(topic, payload.decode()))

    def report(self, topic, payload):
        if self.plant.lets_report(topic):
            self.broker.route(topic, payload.encode(), 1, True)

    def travels(self, is_turn):
        self.figures.travels += 1
        self.figures.turns += is_turn

    # Between the gateway and people.

    def expect_by_mqtt(self, change, topic, payload):
        if f'"id": "{change.id}"' in payload:
            self.by_id[change.id] = change
        elif change.verb not in ("flush", "cancel"):
            for key in change.answers:
                self.by_key.setdefault(key, []).append(change)

    def expect_no_more(self, change):
        for key in change.answers:
            if change in self.by_key.get(key, ()):
                self.by_key[key].remove(change)

    def repeated(self, topic, payload):
        """Each change counts as made once more."""
        if topic.startswith("settle/") and b'"id"' in payload:
            change = self.by_id.get(json.loads(payload)["id"])
            if change:
                self.figures.repeats += 1
                self.person_of[change.parts[0].device].again(change)

    def on_event(self, event):
        key, phase = event["key"], event["phase"]
        if phase in (ACCEPTED, REJECTED):
            self.answer_by_mqtt(key, event)
        person = self.person_of.get(key.partition("/")[0])
        if person and phase == ACCEPTED:
            person.phases[key] = phase
        elif person:
            person.sees(event)

    def answer_by_mqtt(self, key, event):
        change = self.by_id.get(event["id"])
        if change is None and event["source"] == "mqtt" and "group" not in event:
            # A message for a whole device is rejected as one.
            waiting = next((changes for name, changes in self.by_key.items()
                            if changes and (name == key or name.startswith(key + "/"))), None)
            change = waiting[0] if waiting else None
            if change:
                waiting.remove(change)
        if change and ("group" not in event or key in change.answers):
            is_refused = event["phase"] == REJECTED and not self.gateway.is_ready
            status = rejection(event["reason"]) if is_refused else event["phase"]
            change.answer(key, status, event["value"], event["reason"])

    def check_answers(self, changes, was_lost):
        silent = [change for change in changes if not change.is_answered]
        if silent and not was_lost:
            name = silent[0].parts[0].device if silent[0].parts else silent[0].target.partition("/")[0]
            self.finds(self.person_of[name], Finding("unanswered", str(silent[0])))

    # The course of the test.

    def finds(self, person, finding):
        self.figures.wrong += 1
        self.kinds.append(finding.kind)
        if self.options.plant:
            return
        print(f"WRONG at {self.now() - self.start:.3f} s, seed {self.options.seed}, {finding}", flush=True)
        if self.figures.wrong <= MOST_STORIES:
            print("\n".join(person.story()), flush=True)

    async def run(self):
        await self.broker.start(self.port)
        for device in self.simulated.values():
            device.announce()
        await self.gateway.start()
        self.start = self.now()
        faults = Faults(self, self.draw("faults"))
        tasks = [asyncio.create_task(work) for work in (
            faults.run(), self.show_progress(), *(person.live() for person in self.people))]
        self.loop.call_later(self.options.seconds, self.end)
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            task.cancel()
        for task in done:
            task.result()
        await faults.stop_in_order()

    def end(self):
        self.is_over = True

    @property
    def made(self):
        """How often each gesture was made."""
        made = sum((person.hand.made for person in self.people), Counter())
        return {name: made[name] for name in GESTURES}

    def missing(self):
        """What has not happened although there was time for it."""
        if self.options.only or self.options.seconds < ALL_HAPPENS:
            return []
        counts = self.made | asdict(self.figures)
        return [name for name, kind in (GESTURES | FAULTS).items()
                if kind not in self.options.without and not counts[name]]

    async def show_progress(self):
        next_at = self.now() + 10
        while not self.is_over:
            await asyncio.sleep(0.2)
            if self.now() >= next_at and not self.options.plant:
                next_at += 10
                print(f"{self.now() - self.start:6.0f} s  {self.figures}", flush=True)
            if self.plant.is_found(self.kinds):
                self.end()

    async def close(self):
        self.gateway.close()
        await self.broker.close()
