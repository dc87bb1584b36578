# Settle
# SPDX-License-Identifier: Apache-2.0
"""One person at a time at each site: makes gestures, and compares what became of them with the model."""

import asyncio
from collections import deque

from belief import Belief
from intents import ACCEPTED, Answer, Change, Failed, Part, Restart
from model import Finding, SiteModel
from order import MessageOrder
from surfaces import SURFACES, Batch

#: All of it on a busy machine, in seconds: until a site is quiet, until a report has arrived.
QUIET_WITHIN, GRACE, POLL = 120, 10, 0.1
#: Phases after which nothing more happens by itself.
ENDED = {None, "confirmed", "unchanged", "failed", "expired", "cancelled", "superseded", "rejected"}


class Person:
    def __init__(self, world, site, hand):
        self.world, self.site, self.hand = world, site, hand
        self.devices = {device.name: device for device in site.devices}
        self.keys = {f"{device.name}/{name}": part for device in site.devices for name, part in device.properties.items()}
        self.states = {name: dict(world.simulated[name].state) for name in self.devices}
        self.orders = {device.name: MessageOrder(device) for device in site.devices}
        self.records, self.messages = [], []
        #: Properties of which nobody has told the gateway yet.
        self.forgotten = {key for key, part in self.keys.items() if part.kind != "action" and not part.has_state}
        #: Of a lamp that is off, key -> what its target may be: what it reports then moves the actual value only.
        self.dark = {}
        #: Key -> when a hand changed it since all was quiet, and what it had before.
        self.hands = {}
        #: Key -> the command that is handed over and not acknowledged. Of properties whose state nobody reports: those of
        #: which one was replaced then, and none was acknowledged since; what may have been sent last.
        self.unacknowledged, self.unsure, self.doubts = {}, set(), {}
        #: Key -> the newest phase that was told.
        self.phases = {}
        self.presses, self.recent = {}, deque(maxlen=400)
        self.model = SiteModel(site, self.states, self.forgotten)
        #: Whether all of a gesture was answered, and nothing more is done until all is quiet.
        self.is_waiting = False

    # What happens around this person.

    def hears(self, message):
        self.messages.append(message)
        self.recent.append((message.at, "message", message))
        for name, value in message.values.items():
            if self.devices[message.device].properties[name].kind == "action" and message.is_kept:
                press = self.presses.get((f"{message.device}/{name}", value))
                if press:
                    press["messages"] += 1

    def sees(self, event):
        key, phase = event["key"], event["phase"]
        if event["reason"] != "newer value":
            self.recent.append((self.world.now(), "event", f"{key} {phase} {event['value']} {event['reason'] or ''}"))
        if key in self.keys and (phase in ("failed", "expired") or self.is_misled(key, event)):
            part = self.keys[key]
            if part.kind == "action":
                for (name, word), press in self.presses.items():
                    if name == key and word == event["value"]:
                        press["ended"] = phase
            self.records.append(Failed(self.world.now(), key, event["id"]))

        if key in self.keys and self.keys[key].kind != "action":
            self.follow(key, phase, event["id"])

    def follow(self, key, phase, id_):
        """Notes whether the gateway knows what has left."""
        self.phases[key] = phase
        if phase == "sending":
            self.unacknowledged[key] = id_
        elif self.unacknowledged.get(key) == id_:
            del self.unacknowledged[key]
            if phase != "sent" and not self.keys[key].has_state:
                self.unsure.add(key)
            elif phase != "sent" and self.is_late(key):
                # What is reported from now on may be older than what has perhaps left.
                self.records.append(Failed(self.world.now(), key, id_))
        if phase == "sent":
            self.unsure.discard(key)

    def is_late(self, key):
        """Whether its device answers late."""
        return self.devices[key.partition("/")[0]].details.get("late", False)

    def is_misled(self, key, event):
        """Whether an answer to an older request was taken for a hand at the device."""
        return self.is_late(key) and event["phase"] == "superseded" and event["reason"] == "changed at the device"

    def restart(self, is_kill):
        self.records.append(Restart(self.world.now(), is_kill))
        self.unacknowledged, self.unsure = {}, set()
        self.recent.append((self.world.now(), "gateway", "killed" if is_kill else "terminated"))

    def again(self, change):
        """The broker delivers a change once more, whose acknowledgement it has not seen."""
        copy = Change(self.world.number(), self.world.now(), change.gesture, change.surface, change.verb, change.target,
                      change.argument, change.is_now, change.is_mistake, change.id + "-again")
        self.complete(copy)
        copy.lose()
        self.record(copy)

    # Gestures.

    async def live(self):
        while not self.world.is_over:
            surface, acts = self.hand.gesture()
            self.world.figures.gestures += 1
            await self.perform(SURFACES[surface](self.world), acts)
        await self.quiet()

    async def perform(self, surface, acts):
        for act in acts:
            if act.verb == "quiet":
                await surface.finish()
                await self.quiet()
                surface = SURFACES[surface.name](self.world)
            elif act.verb == "hand":
                self.by_hand(act)
            elif act.verb != "pause":
                await self.world.gateway.ready()
                change = self.change(act, surface.name)
                await surface.send(change)
            if act.pause and not isinstance(surface, Batch):
                await asyncio.sleep(act.pause)
        await surface.finish()

    def by_hand(self, act):
        device, _, name = act.target.partition("/")
        self.world.simulated[device].hand({name: act.argument})
        if self.is_dark(device):
            self.dark.setdefault(act.target, set()).add(self.states[device][name])
        self.hands[act.target] = self.world.now(), self.states[device][name]
        self.states[device][name] = act.argument
        self.recent.append((self.world.now(), "hand", f"{act.target} {act.argument}"))

    def is_dark(self, device):
        """Whether it is a lamp that is off, and that its brightness would turn on."""
        return self.devices[device].details.get("implies", False) and not self.world.simulated[device].state["power"]

    def change(self, act, surface):
        number = self.world.number()
        change = Change(number, self.world.now(), self.hand.count, surface, act.verb, act.target, act.argument,
                        act.is_now and surface != "mqtt", self.world.plant.is_mistake(act.is_mistake), f"g{number}")
        self.complete(change)
        self.record(change)
        self.world.figures.values += len(change.parts)
        return change

    def record(self, change):
        self.records.append(change)
        self.recent.append((change.at, "change", change))
        for part in change.parts:
            if part.verb == "press" and part.argument not in ("STOP", "OPEN", "CLOSE"):
                press = {"part": part, "messages": 0, "ended": None, "epoch": self.world.epoch()}
                self.presses.setdefault((f"{part.device}/{part.property}", part.argument), press)

    def complete(self, change):
        """The answers that are expected, and the parts for each device."""
        if change.verb == "scene":
            wanted = [(f"{target}/{name}", "set", value)
                      for target, values in self.site.scenes[change.target].items() for name, value in values.items()]
        elif change.verb == "many":
            wanted = [(f"{change.target}/{name}", "set", value) for name, value in change.argument.items()]
        elif change.verb in ("flush", "cancel"):
            change.answers[change.target] = Answer()
            return
        else:
            wanted = [(change.target, change.verb, change.argument)]
        for key, verb, argument in wanted:
            answer = change.answers[key] = Answer()
            target, _, name = key.partition("/")
            for device in self.site.groups.get(target, [target]):
                believed = self.world.plant.argument(verb, argument, change.is_mistake)
                change.parts.append(Part(change, device, name, verb, believed, answer, is_of_group=target in self.site.groups))

    # Whether all is as it must be.

    async def quiet(self):
        """Waits until nothing more happens here, and compares. What is wrong is reported, then forgotten."""
        world = self.world
        epoch, start, wrong_since, problem = world.epoch(), world.now(), None, None
        self.is_waiting = True
        while True:
            await world.gateway.ready()
            if epoch != world.epoch():
                epoch, start, wrong_since = world.epoch(), world.now(), None
            seen = await self.look()
            if isinstance(seen, str):
                wrong_since = None
                if world.now() - start > QUIET_WITHIN:
                    problem = Finding("quiet", f"not quiet within {QUIET_WITHIN} s: {seen}")
                    break
            elif seen is not None and epoch == world.epoch():
                problem = self.judge_states(seen)
                wrong_since = wrong_since or world.now()
                # A report may be on its way.
                if not problem or world.now() - wrong_since > GRACE:
                    break
            await asyncio.sleep(POLL)
        self.is_waiting = False
        world.figures.checks += 1
        for finding in [problem, self.judge_order(), self.judge_presses()]:
            if finding:
                world.finds(self, finding)
        self.forget()

    async def look(self):
        """What the gateway says of each key; a text that says why it is not quiet; `None` without an answer."""
        world = self.world
        if any(world.simulated[name].is_restless for name in self.devices):
            return "a device is on its way"
        if not world.broker.connected:
            return "the gateway has no broker"
        if world.broker.is_swallowing:
            return "messages are lost"
        topics = {topic for topic, names in world.command_topics.items() if names & self.devices.keys()}
        topics |= {world.simulated[name].topic for name in self.devices}
        topics |= {f"{world.simulated[name].topic}/state" for name in self.devices}
        if world.broker.owes(topics):
            return "something is not acknowledged"
        rows = {}
        for name in self.devices:
            pending = await world.gateway.ask({"pending": f"{name}/*"})
            got = await world.gateway.ask({"get": f"{name}/*"})
            if not pending or not got:
                return None
            if pending["pending"]:
                return f"pending: {pending['pending'][0]}"
            for row in got["get"]:
                part = self.keys.get(row["key"])
                is_ended = row["phase"] in ENDED or row["phase"] == "sent" and part and not part.has_state
                if part and not is_ended:
                    return f"{row['key']} is {row['phase']}"
                rows[row["key"]] = row
        if world.broker.owes(topics) or world.broker.is_swallowing \
                or any(world.simulated[name].is_restless for name in self.devices):
            return "something is not acknowledged"
        return rows

    def judge_states(self, rows):
        """The first state, answer or view that is wrong."""
        self.model = SiteModel(self.site, self.states, self.forgotten, self.possible_targets(), self.hands)
        self.model.play(self.records)
        if self.model.findings:
            return self.model.findings[0]
        for device, part, belief in self.model.states():
            value, row = self.world.simulated[device].state[part.name], rows[f"{device}/{part.name}"]
            if not belief.allows(value):
                if row["phase"] == "expired":
                    self.world.figures.excused += 1
                    continue
                return Finding("state", f"{device}/{part.name} is {value}, expected {belief}; the gateway says {row}")
            is_target = row["target"] == value or row["target"] in self.dark_targets(device, part.name)
            if part.reports and not (row["actual"] == value and is_target):
                return Finding("view", f"{device}/{part.name} is {value}; the gateway says {row}")
        return None

    def possible_targets(self):
        """Key -> what a step may count from beside the state of the device."""
        possible = dict(self.doubts)
        for key, targets in self.dark.items():
            possible[key] = possible.get(key, Belief()).join(Belief(targets))
        return possible

    def dark_targets(self, device, name):
        """What a property may show as its target although the device has another value."""
        if name != "brightness" or not self.is_dark(device):
            return set()
        key = f"{device}/{name}"
        return self.dark.get(key, set()) | self.model.expectation(key).perhaps_sent().values

    def judge_order(self):
        """The first message that nobody asked for, or that came too late."""
        for record in self.records:
            for part in getattr(record, "parts", ()):
                self.orders[part.device].add(part)
        found = None
        for message in self.messages:
            try:
                self.orders[message.device].check(message)
            except Finding as finding:
                found = found or finding
        return found

    def judge_presses(self):
        for (key, word), press in self.presses.items():
            answer, count = press["part"].answer, press["messages"]
            fewest = 1 if answer.status == ACCEPTED and not press["ended"] and press["epoch"] == self.world.epoch() else 0
            if not fewest <= count <= 1:
                return Finding("press", f"{key}: {word} was {answer.status}, and left {count} times")
        return None

    def forget(self):
        """From here on what the devices have now is what counts."""
        self.states = {name: dict(self.world.simulated[name].state) for name in self.devices}
        # Of a device without a state topic the gateway knows what it has sent since its start.
        self.forgotten = {key for key, part in self.keys.items()
                          if part.kind != "action" and not part.has_state and self.model.expectation(key).is_forgotten}
        self.dark = {key: targets for key, part in self.keys.items()
                     if (targets := self.dark_targets(key.partition("/")[0], part.name))}
        self.doubts = {key: self.model.expectation(key).perhaps_sent() for key in self.unsure}
        self.records, self.messages, self.presses, self.hands = [], [], {}, {}

    def story(self, count=60):
        """The last things that happened here, with their moments."""
        return [f"  {at - self.world.start:8.3f} s  {kind:8} {what}" for at, kind, what in list(self.recent)[-count:]]
