// Settle
// SPDX-License-Identifier: Apache-2.0

// The page's state: devices, keys and the progress of each key's newest change. It uses neither network
// nor DOM. Times are milliseconds of performance.now().

import { same } from "./values.js";

/** The maximum number of events per key for its timeline. */
const HISTORY = 240;
/** How many milliseconds after its due time a value still counts as settling. */
export const OVERDUE = 250;

/**
 * One property. A change moves the shown value immediately. Messages about older changes do not move it
 * back until the gateway has accepted the newest one and the control is released.
 */
export class Key {
  constructor(facts, device, id) {
    this.device = device;
    this.id = id;
    this.history = [];
    this.tally = null;
    this.held = false;
    this.draft = undefined;
    this.newest = null;
    this.landed = undefined;
    this.isAccepted = true;
    this.awaitsRow = false;
    this.isOwn = false;
    this.refusal = null;
    this.reason = null;
    this.asked = null;
    this.acceptedCount = 0;
    this.unsent = false;
    this.base = null;
    this.lastSending = null;
    this.lastChange = null;
    this.describe(facts);
  }

  describe(facts) {
    this.key = facts.key;
    this.name = facts.name ?? null;
    this.type = facts.type;
    this.range = facts.range ?? null;
    this.step = facts.step ?? null;
    this.unit = facts.unit ?? null;
    this.values = facts.values ?? null;
    this.canConfirm = facts.can_confirm;
    this.delay = facts.delay_ms ?? 0;
    this.maxWait = facts.max_wait_ms ?? null;
    this.leading = facts.leading ?? false;
    this.minInterval = facts.min_interval_ms ?? 0;
    this.urgent = facts.urgent ?? [];
  }

  /** The longest time, in milliseconds, that a value usually waits. */
  get span() { return Math.max(this.delay, this.minInterval); }

  /** The shown value: the draft, otherwise the target, otherwise the actual value. */
  get shown() {
    return this.draft !== undefined ? this.draft : this.target ?? this.actual ?? null;
  }

  /** The actual value if it differs from the shown one, otherwise null. */
  get elsewhere() {
    return this.actual !== null && this.actual !== undefined && !same(this.actual, this.shown) ? this.actual : null;
  }

  // Changes of this page

  /** Records a requested change; `value` is undefined if the gateway computes it. */
  ask(value, now) {
    if (value !== undefined) this.draft = value;
    this.isAccepted = false;
    this.awaitsRow = false;
    this.isOwn = true;
    this.refusal = null;
    this.reason = null;
    const isFirst = this.lastChange === null || now - this.lastChange >= this.delay;
    if (isFirst) this.base = now;
    this.lastChange = now;
    let due = this.leading && isFirst ? now : now + this.delay;
    if (this.maxWait !== null && this.base !== null) {
      due = Math.min(due, Math.max(now, this.base + Math.max(this.maxWait, this.delay)));
    }
    if (this.lastSending !== null) due = Math.max(due, this.lastSending + this.minInterval);
    const isUrgent = this.urgent.some((u) => same(u, value));
    this.asked = isUrgent || due <= now ? { name: "sending" } : { name: "settling", due, span: this.span };
  }

  /** Records that a change is sent. */
  sent(id) {
    this.newest = id;
    this.isAccepted = false;
    this.unsent = false;
  }

  hold(isHeld) {
    this.held = isHeld;
    if (!isHeld) this.release();
  }

  /** Records that the gateway has accepted a change. */
  answered(id) {
    if (id !== this.newest || this.unsent) return;
    this.isAccepted = true;
    // Keeps the draft until the next row, which has the new target, so that the old one does not flash.
    this.awaitsRow = true;
  }

  /** Records that a change is delivered. The stream or the next snapshot reports its acceptance. */
  arrived(id) { this.landed = id; }

  refused(id, reason, now) {
    if (id !== this.newest || this.unsent) return;
    const value = this.draft;
    this.isAccepted = true;
    this.awaitsRow = false;
    this.asked = null;
    if (!this.held) this.draft = undefined;
    this.refusal = { value, reason, at: now };
  }

  release() {
    if (!this.isAccepted || this.awaitsRow) return;
    this.asked = null;
    if (!this.held) this.draft = undefined;
  }

  // Messages from the gateway

  /** Applies the state of the key. */
  row(row, now) {
    this.target = row.target ?? null;
    this.actual = row.actual ?? null;
    this.phase = row.phase ?? null;
    this.since = row.age_ms === null || row.age_ms === undefined ? null : now - row.age_ms;
    this.failure = row.failure ?? null;
    const pending = row.pending ?? null;
    this.pending = pending && {
      value: pending.value,
      waits: pending.waits,
      due: pending.due_ms === null ? null : now + pending.due_ms,
    };
    this.acceptedCount = pending ? pending.waiting ?? pending.collapsed + 1 : 0;
    if (row.online !== undefined) this.device.online = row.online;
    this.awaitsRow = false;
    this.release();
  }

  /** Applies an event of a change. */
  event(event, at, now) {
    this.history.push({ at, phase: event.phase, value: event.value, collapsed: event.collapsed, id: event.id, attempt: event.attempt, reason: event.reason });
    if (this.history.length > HISTORY) this.history.splice(0, this.history.length - HISTORY);
    const isNewest = event.id === this.newest;
    switch (event.phase) {
      case "accepted":
        if (isNewest) this.answered(event.id);
        else if (this.isAccepted) this.isOwn = false;
        this.reason = null;
        this.refusal = null;
        break;
      case "rejected":
        this.refused(event.id, event.reason ?? "refused", now);
        break;
      case "sending":
        this.base = now;
        this.lastSending = now;
        if (event.attempt === 1) this.tally = { changes: event.collapsed + 1, commands: 1 };
        break;
      case "unchanged":
        this.tally = { changes: event.collapsed + 1, commands: 0 };
        this.reason = event.reason;
        break;
      case "cancelled":
      case "superseded":
      case "failed":
      case "expired":
        this.reason = event.reason;
        break;
      default: break;
    }
  }

  /** The progress of the newest change: a name, with its due time or reason. */
  progress(now) {
    if (this.asked) {
      return this.unsent ? { name: "unsent" } : this.asked;
    }
    if (this.refusal) return { name: "failed", reason: this.refusal.reason, value: this.refusal.value };
    if (this.pending) {
      if (this.pending.waits === "quiet" && !(this.pending.due !== null && now > this.pending.due + OVERDUE)) {
        return { name: "settling", due: this.pending.due ?? now, span: this.span };
      }
      return { name: "waiting", waits: this.pending.waits, due: this.pending.due };
    }
    switch (this.phase) {
      case "accepted": return { name: "settling", due: now, span: this.span };
      case "sending": return { name: "sending" };
      case "sent": return { name: this.canConfirm ? "sent" : "done" };
      case "confirmed": return { name: "confirmed" };
      case "unchanged": return { name: "unchanged" };
      case "failed":
      case "expired":
        return {
          name: "failed",
          reason: this.failure?.reason || this.reason || (this.phase === "expired" ? "it waited too long" : "it was not confirmed"),
          value: this.failure ? this.failure.value : this.target,
          isExpired: this.phase === "expired",
        };
      case "superseded":
      case "cancelled":
        return { name: this.phase, reason: this.reason };
      default: return { name: "idle" };
    }
  }

  /** Whether a value is not sent yet. */
  isOpen(now) {
    const name = this.progress(now).name;
    return name === "settling" || name === "waiting" || name === "unsent";
  }
}

/** All devices. */
export class House {
  constructor() {
    this.devices = [];
    this.keys = new Map();
    this.totals = { changes: 0, commands: 0 };
    this.hasBroker = true;
    this.shape = "";
    this.offset = null;
  }

  /** Loads a snapshot. Returns true if devices or properties changed. */
  load(answer, now) {
    this.hasBroker = answer.broker?.connected ?? true;
    const shape = JSON.stringify(answer.devices.map((device) => [
      device.id, device.name, Object.entries(device.properties).map(([id, facts]) => {
        const { target, actual, phase, age_ms, online, pending, failure, ...fixed } = facts;
        return [id, fixed];
      }),
    ]));
    const isOther = shape !== this.shape;
    if (isOther) {
      this.shape = shape;
      const old = this.keys;
      this.keys = new Map();
      this.devices = answer.devices.map((device) => {
        const mine = { id: device.id, name: device.name, online: device.online, keys: [] };
        for (const [id, facts] of Object.entries(device.properties)) {
          const known = old.get(facts.key);
          const key = known && known.type === facts.type ? known : new Key(facts, mine, id);
          key.device = mine;
          key.describe(facts);
          mine.keys.push(key);
          this.keys.set(key.key, key);
        }
        return mine;
      });
    }
    answer.devices.forEach((device, place) => {
      this.devices[place].online = device.online;
      for (const facts of Object.values(device.properties)) {
        const key = this.keys.get(facts.key);
        if (key.landed === key.newest) key.answered(key.newest);
        key.row(facts, now);
      }
    });
    return isOther;
  }

  /** The key called `name`; null if it is unknown. */
  find(name) { return this.keys.get(name) ?? null; }

  /** Converts a time of the gateway's clock to the page's clock. */
  moment(at, now) {
    const wall = Date.parse(at);
    if (!Number.isFinite(wall)) return now;
    // The message with the least delay gives the best estimate of the clocks' offset.
    const offset = now - wall;
    if (this.offset === null || offset < this.offset || offset > this.offset + 5000) this.offset = offset;
    return Math.min(now, wall + this.offset);
  }

  count(event) {
    if (event.phase === "accepted") this.totals.changes += 1;
    if (event.phase === "sending" && event.attempt === 1) this.totals.commands += 1;
  }
}
