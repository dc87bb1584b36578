# Settle
# SPDX-License-Identifier: Apache-2.0
"""What people do: random gestures, drawn from a seed alone, so that a seed always gives the same.

A gesture is a list of acts; an act is a verb with its target and argument, and the pause after it.
"""

from collections import Counter
from dataclasses import dataclass

#: Every gesture that people make, and the kind without which none does.
GESTURES = {
    "drag": None, "drag then flush": None, "drag then cancel": None, "drag then now": None, "single values": None,
    "mistake": None, "hand": None, "steps": None, "presses": None, "toggles": None, "scene": None,
    "drag then off": None, "off then drag": None, "power and brightness": None, "power then brightness": None,
    "member then group": "groups",
    "position then step": None, "position then position": None,
    "drag then stop": "stop", "stop then position": "stop", "open or close": "stop", "drag then mode": "stop",
}


@dataclass(frozen=True)
class Act:
    verb: str  # set, step, toggle, press, many, scene, flush, cancel, hand; pause, quiet
    target: str = ""
    argument: object = None
    pause: float = 0
    is_now: bool = False
    is_mistake: bool = False


class Hand:
    """Draws the gestures at one site."""

    def __init__(self, site, random, without):
        self.site, self.random, self.without, self.count = site, random, without, 0
        #: How often each gesture was made.
        self.made = Counter()

    def makes(self, name, acts):
        self.made[name] += 1
        return acts

    def gesture(self):
        """The name of a surface, and the acts."""
        self.count += 1
        acts = getattr(self, f"at_{self.site.devices[0].kind.lower()}")()
        # Some are looked at before the next one; where answers are late, all have to be without "travel".
        is_patient = "travel" in self.without and self.site.devices[0].kind == "Thermostat"
        if is_patient or self.random.random() < 0.4:
            acts.append(Act("quiet"))
        else:
            acts.append(Act("pause", pause=self.random.choice([0, 0.05, 0.3, 1])))
        return self.surface(acts), acts

    def surface(self, acts):
        plain = all(act.verb in ("set", "step", "toggle", "flush", "cancel", "pause", "quiet") for act in acts)
        return self.random.choice(["socket", "socket", "mqtt", "mqtt", "http", "batch" if plain else "http"])

    # The gestures of each kind of device.

    def at_plain(self):
        device = self.site.devices[0]
        if "power" in device.properties:
            return self.toggles(f"{device.name}/power", self.random.randint(1, 14))
        key, part = f"{device.name}/level", device.properties["level"]
        drawn = self.random.random()
        if drawn < 0.25 and "press" in device.properties:
            return self.presses(f"{device.name}/press")
        if drawn < 0.45 and (part.reports or not part.has_state):
            return self.steps(key, 50)
        return self.number(key, part)

    def at_lamp(self):
        if self.site.groups:
            return self.at_group()
        device = self.random.choice(self.site.devices)
        return self.lamp(device.name, device.properties["brightness"])

    def at_group(self):
        group = next(iter(self.site.groups))
        member = self.random.choice(self.site.devices)
        target = self.random.choice([group, group, member.name])
        drawn = self.random.random()
        if drawn < 0.2:
            # A finger at one member while the group is off, on, or somewhere else.
            first = self.lamp(member.name, member.properties["brightness"])
            return self.makes("member then group", [
                *first, Act("set", f"{group}/power", self.random.random() < 0.3, self.pause())])
        if drawn < 0.3:
            return self.makes("scene", [Act("scene", next(iter(self.site.scenes)), pause=self.pause())])
        return self.lamp(target, member.properties["brightness"])

    def at_cover(self):
        name, part = self.site.devices[0].name, self.site.devices[0].properties["position"]
        drawn = self.random.random()
        key = f"{name}/position"
        if self.random.random() < 0.25:
            # A change of mind on the way.
            first = Act("set", key, self.value(part), self.random.uniform(0.3, 1.5), is_now=True)
            if self.random.random() < 0.6:
                return self.makes("position then step", [first, *self.steps(key, 15)])
            return self.makes("position then position", [first, Act("set", key, self.value(part))])
        if "stop" in self.without or drawn < 0.35:
            return self.steps(key, 15) if drawn < 0.15 else self.number(key, part)
        command = f"{name}/command"
        if drawn < 0.65:
            acts = self.drag(key, part)
            wait = Act("pause", pause=self.random.choice([0, 0.3, 0.6, 1, 2]))
            stops = [Act("press", command, "STOP", self.pause()) for _ in range(self.random.choice([1, 1, 2]))]
            return self.makes("drag then stop", [*acts, wait, *stops])
        if drawn < 0.8:
            acts = [Act("press", command, "STOP", self.pause()), Act("set", key, self.random.randint(0, 100), self.pause())]
            return self.makes("stop then position", acts + ([Act("flush", key)] if self.random.random() < 0.5 else []))
        return self.makes("open or close", [
            Act("press", command, self.random.choice(["OPEN", "CLOSE"]), self.random.choice([0, 0.2, 1])),
            *(self.drag(key, part) if self.random.random() < 0.5 else [])])

    def at_thermostat(self):
        name, part = self.site.devices[0].name, self.site.devices[0].properties["target"]
        key, mode, drawn = f"{name}/target", f"{name}/mode", self.random.random()
        if "travel" in self.without:
            # One command at a time, because the answers are late.
            if drawn < 0.2 and "stop" not in self.without:
                return self.makes("drag then mode", [Act("set", mode, self.random.choice(["off", "heat", "auto"]))])
            return self.makes("drag", self.drag(key, part)) if drawn < 0.7 else self.steps(key, 0.5)
        if "stop" not in self.without and drawn < 0.4:
            word = self.random.choice(["off", "off", "heat", "auto"])
            acts = self.drag(key, part) if self.random.random() < 0.6 else []
            return self.makes("drag then mode", [*acts, Act("set", mode, word, self.pause())])
        return self.steps(key, 0.5) if drawn < 0.6 else self.number(key, part)

    # Their parts.

    def pause(self):
        return self.random.choice([0, 0, 0.02, 0.1, 0.4])

    def value(self, part):
        if part.high > 1000:
            # No two alike, so that each message has one cause.
            return self.random.randint(1, 999) * 1000 + self.count % 1000
        value = self.random.uniform(part.low, part.high)
        return int(value) if part.step == 1 else round(value, 1)

    def drag(self, key, part, most=40):
        count, pace = self.random.randint(5, most), self.random.choice([0.005, 0.015, 0.03, 0.06])
        start, end = self.value(part), self.value(part)
        acts = []
        for number in range(1, count + 1):
            value = start + (end - start) * number / count
            value = int(value) if part.step == 1 else round(value, 1)
            acts.append(Act("set", key, value, pace * self.random.uniform(0.5, 1.5)))
        return acts

    def number(self, key, part):
        """A drag and how it ends, or single values."""
        drawn = self.random.random()
        if drawn < 0.3:
            return self.makes("drag", self.drag(key, part))
        if drawn < 0.45:
            return self.makes("drag then flush", [*self.drag(key, part), Act("flush", key, pause=self.pause())])
        if drawn < 0.6:
            return self.makes("drag then cancel", [*self.drag(key, part, 12), Act("cancel", key, pause=self.pause())])
        if drawn < 0.7:
            return self.makes("drag then now", [*self.drag(key, part, 12), Act("set", key, self.value(part), is_now=True)])
        if drawn < 0.85:
            return self.makes("single values", [
                Act("set", key, self.value(part), self.pause(), is_now=self.random.random() < 0.6)
                for _ in range(self.random.randint(1, 6))])
        if drawn < 0.92:
            return self.makes("mistake", [Act("set", key, part.high + self.random.randint(1, 50), is_mistake=True)])
        if not part.reports:
            return self.makes("drag", self.drag(key, part))
        # Somebody at the device itself, when all is quiet.
        return self.makes("hand", [Act("quiet"), Act("hand", key, part.snap(self.value(part))), Act("quiet")])

    def steps(self, key, size):
        sign = self.random.choice([-1, 1])
        acts = []
        for _ in range(self.random.randint(2, 14)):
            amount = sign * size * self.random.choice([1, 1, 1, 2, -1])
            acts.append(Act("step", key, amount, self.random.choice([0.01, 0.05, 0.15])))
        return self.makes("steps", acts + ([Act("flush", key)] if self.random.random() < 0.2 else []))

    def toggles(self, key, count):
        return self.makes("toggles", [
            Act("toggle", key, None, self.random.choice([0.005, 0.05, 0.2, 0.5])) for _ in range(count)])

    def presses(self, key):
        return self.makes("presses", [
            Act("press", key, f"{self.count}-{number}", self.pause()) for number in range(self.random.randint(1, 8))])

    def lamp(self, name, part):
        """What people do with a lamp, or with a group of them."""
        power, brightness, drawn = f"{name}/power", f"{name}/brightness", self.random.random()
        if drawn < 0.25:
            return self.number(brightness, part) if name not in self.site.groups else self.makes("drag", self.drag(brightness, part))
        if drawn < 0.35:
            return self.steps(brightness, 10)
        if drawn < 0.5:
            return self.makes("drag then off", [*self.drag(brightness, part), Act("set", power, False, self.pause())])
        if drawn < 0.6:
            return self.makes("off then drag", [Act("set", power, False, self.pause()), *self.drag(brightness, part, 10)])
        if drawn < 0.75:
            values = {"brightness": self.value(part), "power": self.random.random() < 0.7}
            first = self.drag(brightness, part, 8) if drawn < 0.67 else []
            return self.makes("power and brightness", [*first, Act("many", name, values, self.pause())])
        if drawn < 0.85:
            count = self.random.randint(1, 10) if "toggles" not in self.without else 1
            return self.toggles(power, count)
        if drawn < 0.93 and self.site.scenes and name not in self.site.groups:
            return self.makes("scene", [Act("scene", self.random.choice(list(self.site.scenes)), pause=self.pause())])
        return self.makes("power then brightness", [
            Act("set", power, self.random.random() < 0.5, self.pause()), Act("set", brightness, self.value(part), self.pause())])
