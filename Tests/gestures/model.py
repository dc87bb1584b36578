# Settle
# SPDX-License-Identifier: Apache-2.0
"""What a person expects of the devices after a series of changes.

Per device, from the accepted changes in the order of their acceptance: the state that each property
must have once all is quiet. What was not answered may or may not have happened. Written from what the
documentation promises, in terms of what was asked and not of queues, windows or timers.
"""

from belief import Belief
from intents import ACCEPTED, LOST, REJECTED, Change, Failed, Restart

#: A cancel or a confirmation reaches the disk with the next commit; a kill within so many seconds may undo it.
CANCEL_REACHES_DISK = 2.0


class Finding(Exception):
    """Something is wrong; `kind` is a word."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Expectation:
    """What is known of one property."""

    def __init__(self, device, part, value, doubt=None):
        self.key, self.part = f"{device.name}/{part.name}", part
        #: Whether the device may report what it had before; whether the gateway may take that for what it has.
        self.is_late, self.is_stale = device.details.get("late", False), False
        #: What a value replaced that it may be taken for.
        self.replaced = None
        #: Each value asked for since all was quiet, and the one before: what may have been sent meanwhile.
        self.trail = [value]
        self.final = Belief([value])
        #: What a step counts from, if that is not `final`; whether the gateway may not know it.
        self.base, self.is_forgotten, self.has_doubt = None, False, False
        #: What the gateway may have sent last, if it does not know what has left.
        self.doubt = doubt
        if doubt:
            self.base = doubt.join(self.final)
        #: Whether it does not know it from before the newest value either, which a cancel may drop.
        self.was_forgotten = False
        self.undone = None

    def asks(self, outcome, is_sure):
        before, is_repeated = self.final, not outcome.values.isdisjoint(self.trail)
        self.trail += outcome.values
        if outcome.span:
            self.trail += outcome.span
        if is_sure:
            self.final, self.base, self.is_forgotten, self.undone = outcome, None, False, None
        else:
            self.final, self.has_doubt = self.final.join(outcome), True
            self.base = self.base and self.base.join(outcome)
        self.replaced = self.any_of_trail() if self.is_late and is_repeated else None
        if self.is_stale and self.replaced:
            self.final = self.final.join(self.replaced)

    def becomes(self, outcome, is_sure):
        """Another property of the device has this effect on it."""
        self.final = outcome if is_sure else self.final.join(outcome)
        self.base = self.doubt and self.doubt.join(self.final)

    def any_of_trail(self):
        return Belief(self.trail)

    def counts_from(self):
        return self.base or self.final

    def outcome(self, verb, argument, value, is_sure):
        """What a change asks for, and whether the answer fits; `value` is what was answered."""
        if verb in ("set", "press"):
            expected = Belief([self.part.snap(argument)])
        elif verb == "step":
            expected = self.counts_from().map(self.part.add(argument))
        else:
            expected = self.counts_from().map(lambda value: not value)
        if not is_sure or value is None:
            return expected, True
        return Belief([value]), expected.allows(value)

    def cancel(self, count, at):
        before = self.final
        if count == 0:
            return
        if count is not None and not self.has_doubt and len(self.trail) > 1:
            self.trail.pop()
        self.final, self.is_forgotten = self.any_of_trail(), self.was_forgotten
        self.base = self.doubt and self.doubt.join(self.final)
        self.undone = (at, before)

    def restart(self, restart):
        if restart.is_kill and self.undone and restart.at - self.undone[0] < CANCEL_REACHES_DISK:
            self.final = self.final.join(self.undone[1])
        # A mute device says nothing.
        self.fails()

    def perhaps_sent(self):
        return self.any_of_trail().join(self.final).join(self.doubt or Belief())

    def everything(self):
        belief = self.perhaps_sent()
        return belief.widened() if self.part.kind == "number" else belief

    def fails(self):
        """The gateway knows only what the device reports, on its way or not."""
        self.is_stale = self.is_late
        if self.replaced:
            self.final = self.final.join(self.replaced)
        self.base = self.everything()
        self.is_forgotten = self.was_forgotten = True


class DeviceModel:
    """The properties of a device, and what they mean for each other."""

    def __init__(self, device, state, doubts):
        self.device = device
        #: Of a cover: whether it got a word since all was quiet, and where the last one may have led.
        self.is_commanded, self.way = False, None
        #: The identifier of the newest change that was accepted.
        self.newest = ""
        self.properties = {
            name: Expectation(device, part, state[name], doubts.get(f"{device.name}/{name}"))
            for name, part in device.properties.items() if part.kind != "action"
        }

    def apply(self, values, is_sure):
        """One change: property -> belief, in the order in which it states them."""
        for name, outcome in values.items():
            if name in self.properties:
                self.properties[name].asks(outcome, is_sure)
        getattr(self, f"rules_of_{self.device.kind.lower()}")(values, is_sure)

    def press_fails(self, id_):
        """A word did not leave, or perhaps did; what it ended has ended all the same."""
        if self.device.kind == "Cover" and id_ == self.newest:
            position = self.properties["position"]
            position.final = position.everything()

    def rules_of_plain(self, values, is_sure):
        pass

    def rules_of_lamp(self, values, is_sure):
        if not self.device.details["implies"]:
            return
        power, brightness = self.properties["power"], self.properties["brightness"]
        if "power" in values:
            # An off ends what would turn the lamp on, and an on a brightness of 0, so its brightness may be any that was
            # asked for.
            if "brightness" not in values and (values["power"].allows(False) or brightness.final.allows(0)):
                brightness.becomes(brightness.any_of_trail(), is_sure)
        elif "brightness" in values:
            implied = Belief({value > 0 for value in values["brightness"].values} | {True for _ in values["brightness"].span or ()})
            power.asks(implied, is_sure)

    def rules_of_cover(self, values, is_sure):
        position = self.properties["position"]
        if "position" in values:
            self.after_command(position, values["position"])
            return
        word = values["command"].only
        if word == "STOP":
            position.becomes(position.everything(), is_sure)
        else:
            self.way = Belief([100 if word == "OPEN" else 0])
            position.asks(self.way, is_sure)
            # A press is not kept over a crash.
            position.undone = (float("inf"), position.everything())
            # A step counts from where it is.
            position.base = position.everything()
        self.is_commanded = True

    def after_command(self, position, outcome):
        """A position after OPEN, CLOSE or STOP.

        Until the device reports its way, the gateway may take the position for what it has already. And a
        report of where it stopped or moves to lies outside of what was asked for: a hand at the device.
        """
        if self.is_commanded:
            position.base = position.everything()
        if self.way and any(value in position.trail[:-1] for value in outcome.values):
            position.final = position.final.join(self.way)

    def rules_of_thermostat(self, values, is_sure):
        if "mode" in values and values["mode"].allows("off"):
            target = self.properties["target"]
            target.becomes(target.any_of_trail(), is_sure)


class SiteModel:
    """All devices of a site, since all was quiet."""

    def __init__(self, site, states, forgotten=(), doubts=None, hands=None):
        self.site = site
        self.devices = {device.name: DeviceModel(device, states[device.name], doubts or {}) for device in site.devices}
        self.findings = []
        for key in forgotten:
            self.expectation(key).is_forgotten = self.expectation(key).was_forgotten = True
        # What was confirmed just before a hand may be on the disk still, and after a kill is sent once more.
        for key, (at, before) in (hands or {}).items():
            self.expectation(key).undone = at, Belief([before])

    def expectation(self, key):
        device, _, name = key.partition("/")
        return self.devices[device].properties[name]

    def play(self, records):
        for record in records:
            if isinstance(record, Change):
                self.play_change(record)
            elif isinstance(record, Restart):
                for device in self.devices.values():
                    for expectation in device.properties.values():
                        expectation.restart(record)
            elif isinstance(record, Failed):
                device, _, name = record.key.partition("/")
                if name in self.devices[device].properties:
                    self.expectation(record.key).fails()
                else:
                    self.devices[device].press_fails(record.id)

    def play_change(self, change):
        if change.verb == "flush":
            return
        if change.verb == "cancel":
            answer = next(iter(change.answers.values()))
            for key in self.keys(change.target):
                self.cancel(key, answer.value if answer.status == ACCEPTED else None, change.at)
            return
        by_device = {}
        for part in change.parts:
            if part.answer.status == REJECTED:
                self.rejected(part)
            elif part.answer.status in (ACCEPTED, LOST):
                by_device.setdefault(part.device, []).append(part)
        if change.is_mistake:
            accepted = [part for part in change.parts if part.answer.status == ACCEPTED]
            if not accepted:
                return
            self.findings.append(Finding("accepted", f"a value that is not allowed was not rejected: {change}"))
            return
        if change.verb == "toggle" and change.parts[0].is_of_group:
            self.toggle_group(change)
        for name, parts in by_device.items():
            device, values, is_sure = self.devices[name], {}, True
            for part in parts:
                is_sure = is_sure and part.answer.status == ACCEPTED
                values[part.property] = part.outcome = self.outcome(device, part)
            device.apply(values, is_sure)
            if is_sure:
                device.newest = change.id

    def cancel(self, key, count, at):
        self.expectation(key).cancel(count, at)
        device = self.devices[key.partition("/")[0]]
        if count != 0 and device.is_commanded:
            # Nobody knows where it stopped, or turned.
            device.properties["position"].final = device.properties["position"].everything()
        if count != 0 and device.device.kind == "Lamp" and device.device.details["implies"]:
            # With the brightness goes what it implied.
            power = device.properties["power"]
            power.final = power.any_of_trail()

    def keys(self, target):
        device, _, name = target.partition("/")
        return [f"{member}/{name}" for member in self.site.groups.get(device, [device])]

    def outcome(self, device, part):
        if part.verb == "press" or part.property not in device.properties:
            return Belief([part.argument])
        if part.is_of_group and part.verb == "toggle":
            return part.outcome
        expectation = device.properties[part.property]
        # Each member of a group steps from its own value; the answer has no value for all.
        value = None if part.is_of_group else part.answer.value
        outcome, fits = expectation.outcome(part.verb, part.argument, value, part.answer.status == ACCEPTED)
        if not fits:
            base = expectation.counts_from()
            self.findings.append(Finding(
                "step" if part.verb != "set" else "value",
                f"{expectation.key}: #{part.number} {part.verb} {part.argument if part.argument is not None else ''}"
                f" was answered with {part.answer.value}, counted from {base}"))
        return outcome

    def toggle_group(self, change):
        """If any member is on, all turn off; else all turn on."""
        beliefs = [self.devices[part.device].properties[part.property].counts_from() for part in change.parts]
        possible = set()
        if any(belief.allows(True) for belief in beliefs):
            possible.add(False)
        if all(belief.allows(False) for belief in beliefs):
            possible.add(True)
        answer = change.parts[0].answer
        outcome = Belief(possible)
        if answer.status == ACCEPTED and answer.value is not None:
            if answer.value not in possible:
                self.findings.append(Finding("step", f"#{change.number} toggle {change.target} was answered with {answer.value}"))
            outcome = Belief([answer.value])
        for part in change.parts:
            part.outcome = outcome

    def rejected(self, part):
        expectation = self.devices[part.device].properties.get(part.property)
        may_be_unknown = expectation is not None and part.verb in ("step", "toggle") and expectation.is_forgotten
        if not part.change.is_mistake and not may_be_unknown:
            self.findings.append(Finding("rejected", f"{part.device}/{part.property}: {part.change}"))

    def states(self):
        """Each key with the belief about its final state."""
        for device in self.devices.values():
            for expectation in device.properties.values():
                yield device.device.name, expectation.part, expectation.final
