# Settle
# SPDX-License-Identifier: Apache-2.0
"""The plan of faults, and carrying it out."""

import random
import signal
import sys
import threading
import time

from engine import Engine
from processes import STORE

# How often each comes in a round; the order within a round is random.
ROUND = {
    "gateway-kill": 4, "gateway-stop": 1, "leader-kill": 2, "follower-kill": 2, "engine-stop": 1,
    "nats-cut": 1, "nats-silence": 1, "nats-deafen": 1, "mqtt-cut": 1, "mqtt-silence": 1,
    "route-cut": 1, "route-silence": 1, "restarts": 1, "store-full": 1,
}
# With disks whose power can be cut.
POWER = {"power-one": 2, "power-leader": 3, "power-two": 2, "power-engine": 2, "power-house": 3}
SINGLE = ("gateway-kill", "gateway-stop", "mqtt-cut", "mqtt-silence", "restarts")
TAKEOVER_PATIENCE = 40.0


class Faults:
    def __init__(self, stage, ledger, house, load, knobs, seed, only=None, harsh=False):
        plan = POWER if stage.has_disks else ROUND
        self.stage, self.ledger, self.house, self.load = stage, ledger, house, load
        self.knobs = knobs
        self.random, self.harsh = random.Random(seed), harsh
        kinds = SINGLE if stage.is_single else plan
        self.round = [kind for kind in kinds for _ in range(plan[kind]) if not only or kind in only]
        self.deck, self.deadline = [], time.monotonic() + 3600
        self.engine = None if stage.is_single else Engine(stage.client_ports.values())
        self.timeline, self.counts, self.kills = [], {}, 0
        self.takeovers, self.pauses, self.problems = [], [], []
        # Of faults that should move no partition.
        self.moved = {}

    def note(self, text):
        self.timeline.append((round(time.monotonic() - self.ledger.start, 3), text))
        print(f"{self.timeline[-1][0]:9.3f} {text}", file=sys.stderr)

    # The plan.

    def run(self, end, kills, checks=lambda: True):
        """Faults until a moment, or until so many processes were killed."""
        self.deadline = end + 60
        is_sound = self.recover()
        # What does not recover would be hit by a second fault.
        while (is_sound or self.harsh) and time.monotonic() < end and checks() and not (kills and self.kills >= kills):
            if self.harsh:
                # Two at once, whatever they hit.
                other = threading.Thread(target=self.perform, args=(self.draw(),))
                other.start()
                time.sleep(self.random.uniform(0, 3))
                self.perform(self.draw())
                other.join()
            else:
                self.perform(self.draw())
            is_sound = self.recover()
            time.sleep(self.random.uniform(1, 4))

    def draw(self):
        if not self.deck:
            self.deck = list(self.round)
            self.random.shuffle(self.deck)
        return self.deck.pop()

    def perform(self, kind):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.load.rest(1 / 8)
        self.knobs.rest(1 / 3)
        try:
            getattr(self, kind.replace("-", "_"))()
        except Exception as problem:
            self.problems.append(f"{kind}: {type(problem).__name__}: {problem}")
            self.note(f"{kind}: {problem}")

    def recover(self, patience=60):
        """Waits until every gateway answers, every partition has an owner, and the engine is whole."""
        self.problems += self.stage.unexpected_ends()
        end, missing = min(time.monotonic() + patience, self.deadline), None
        while time.monotonic() < end:
            missing = self.missing()
            if not missing:
                return True
            time.sleep(0.2)
        self.problems.append(f"not recovered: {missing}")
        self.note(f"not recovered: {missing}")
        return False

    def missing(self):
        for name in self.stage.members:
            if not self.stage.ask(name, "status"):
                return f"gateway {name} does not answer"
        if self.engine:
            if not self.engine.is_whole():
                return "the engine is not whole"
            owners = self.engine.owners()
            if not owners or not all(member for member, _ in owners):
                return "a partition without an owner"
        return None

    def pause(self, low, high):
        time.sleep(self.random.uniform(low, high))

    def member(self):
        name = self.random.choice(self.stage.members)
        return name, self.stage.gateways[name]

    # Gateways.

    def gateway_kill(self):
        name, gateway = self.member()
        owners = self.engine.owners() if self.engine else None
        if owners:
            probes = [self.house.probes[number] for number, (member, _) in enumerate(owners) if member == name]
        else:
            probes = self.house.probes if self.stage.is_single else []
        others = [self.stage.socket_path(other) for other in self.stage.members if other != name]
        restart = self.random.uniform(2, 8)
        self.note(f"SIGKILL gateway {name}, owner of {len(probes)} partitions; restart after {restart:.1f} s")
        killed_at = time.monotonic()
        gateway.kill()
        self.kills += 1
        self.load.probe(probes, others or [self.stage.socket_path(name)])
        is_restarted, end = False, killed_at + TAKEOVER_PATIENCE
        while time.monotonic() < end:
            if not is_restarted and time.monotonic() >= killed_at + restart:
                gateway.start()
                is_restarted = True
            if is_restarted and all(self.ledger.first_accepted(probe, killed_at) for probe in probes):
                break
            time.sleep(0.02)
        self.load.end_probes()
        firsts = [self.ledger.first_accepted(probe, killed_at) for probe in probes]
        times = sorted(first - killed_at for first in firsts if first)
        self.takeovers.append({"gateway": name, "restart_after": restart, "unfinished": firsts.count(None), "seconds": times})
        if times:
            self.note(f"taken over within {times[-1]:.3f} s")

    def gateway_stop(self):
        name, gateway = self.member()
        self.note(f"SIGSTOP gateway {name}, 6 s")
        gateway.signal(signal.SIGSTOP)
        time.sleep(6)
        gateway.signal(signal.SIGCONT)

    def restarts(self):
        self.note("restart of each gateway, in turn")
        for name, gateway in self.stage.gateways.items():
            code = gateway.terminate()
            if code != 0:
                self.problems.append(f"gateway {name}, ended by SIGTERM, has the exit code {code}:\n{gateway.log_end()}")
            gateway.start()
            if not self.recover() and not self.harsh:
                return

    # Links of a gateway.

    def fail_links(self, state, links, what):
        seconds = self.random.uniform(3, 12)
        self.note(f"{state}: {what}, {seconds:.1f} s")
        self.stage.links.set(state, *links)
        time.sleep(seconds)
        self.stage.links.set("heal", *links)
        self.note(f"healed: {what}")

    def fail_nats(self, state):
        name, _ = self.member()
        self.fail_links(state, [f"{name}-{engine}" for engine in self.stage.engines], f"gateway {name} and all engines")

    def nats_cut(self):
        self.fail_nats("cut")

    def nats_silence(self):
        self.fail_nats("silence")

    def nats_deafen(self):
        self.fail_nats("deafen")

    def fail_mqtt(self, state):
        name, _ = self.member()
        self.fail_links(state, [f"{name}-mqtt"], f"gateway {name} and the broker")

    def mqtt_cut(self):
        self.fail_mqtt("cut")

    def mqtt_silence(self):
        self.fail_mqtt("silence")

    # Engines.

    def fail_routes(self, state):
        name = self.random.choice(list(self.stage.engines))
        names = self.stage.engines
        links = [link for link in self.stage.links.names if set(link.split("-")) <= set(names) and name in link.split("-")]
        self.without_moves("route-" + state, lambda: self.fail_links(state, links, f"engine {name} and both others"))

    def route_cut(self):
        self.fail_routes("cut")

    def route_silence(self):
        self.fail_routes("silence")

    def leader_kill(self):
        self.kill_engine(self.engine.leader(), "leader-kill")

    def follower_kill(self):
        leader = self.engine.leader()
        self.kill_engine(self.random.choice([name for name in self.stage.engines if name != leader]), "follower-kill")

    def kill_engine(self, name, kind):
        if not name:
            raise RuntimeError("the log has no leader")

        def fail():
            restart = self.random.uniform(2, 6)
            self.note(f"SIGKILL engine {name} ({kind}); restart after {restart:.1f} s")
            self.stage.engines[name].kill()
            self.kills += 1
            time.sleep(restart)
            self.stage.engines[name].start()

        self.without_moves(kind, fail)

    def engine_stop(self):
        name = self.random.choice(list(self.stage.engines))

        def fail():
            self.note(f"SIGSTOP engine {name}, 6 s")
            self.stage.engines[name].signal(signal.SIGSTOP)
            time.sleep(6)
            self.stage.engines[name].signal(signal.SIGCONT)

        self.without_moves("engine-stop", fail)

    def without_moves(self, kind, fail):
        """A fault of the engine: the pause of accepted answers, and partitions that have changed their owner."""
        before, began = self.engine.owners(), time.monotonic()
        fail()
        self.recover()
        self.pauses.append({"fault": kind, "seconds": self.ledger.longest_pause(began, time.monotonic())})
        after = self.engine.owners()
        if before and after:
            moved = sum(one[0] != other[0] for one, other in zip(before, after))
            self.moved[kind] = self.moved.get(kind, 0) + moved

    # Power.

    def power_one(self):
        self.cut_power([self.random.choice(list(self.stage.engines))])

    def power_leader(self):
        """One engine is restarted in order; meanwhile the leader loses its power, and the third goes on."""
        leader = self.engine.leader()
        other = self.random.choice([name for name in self.stage.engines if name != leader])
        self.note(f"engine {other} is ended in order")
        self.stage.engines[other].terminate()
        self.pause(2, 4)
        self.cut_power([self.engine.leader() or leader], others=[other])

    def power_two(self):
        self.cut_power(self.random.sample(list(self.stage.engines), 2))

    def power_engine(self):
        self.cut_power(list(self.stage.engines))

    def power_house(self):
        self.cut_power(list(self.stage.engines), list(self.stage.gateways))

    def cut_power(self, engines, gateways=(), others=()):
        """`others` are engines that are down, and start with those whose power returns."""
        what = " and ".join(["engine " + ", ".join(engines)] + ["all gateways"] * bool(gateways))
        self.note(f"no power: {what}")
        self.stage.cut_power(engines, gateways)
        self.kills += len(engines) + len(gateways)
        self.pause(1, 4)
        self.stage.return_power(engines, gateways)
        for name in others:
            self.stage.engines[name].start()
        self.note("power again")

    def store_full(self):
        self.note("filling the engine's store")
        try:
            stored = self.engine.fill(1 << 19, 4 * STORE)
            self.note(f"full after {stored >> 20} MiB")
            self.pause(3, 8)
        finally:
            if not self.engine.empty():
                self.problems.append("what fills the engine's store was not removed in 30 s")
            self.note("the store has room again")
