// Settle
// SPDX-License-Identifier: Apache-2.0

// One property: its values, and the progress of its newest change. It uses neither network nor DOM. Times
// are milliseconds of performance.now().

import { readable, same } from "./values.js";
import { t } from "./words.js";

/** The maximum number of events for the timeline of a key that somebody looks at, and of any other. */
const FOLLOWED_HISTORY = 240;
const HISTORY = 12;
/** How many milliseconds after its due time a value still counts as settling. */
export const OVERDUE = 250;
/** What a value waits for that is held for its device. */
const HELD = new Set(["offline", "unknown", "asleep"]);
/** The phases in which a command ends. */
export const ENDS = new Set(["confirmed", "failed", "expired", "superseded", "unchanged", "cancelled"]);
/** How long the result of a change is shown. */
export const FADE = 8000;

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
    /** Why an earlier press was not sent, and when that was known. */
    this.missed = null;
    this.reason = null;
    this.asked = null;
    this.acceptedCount = 0;
    this.unsent = false;
    this.base = null;
    this.lastSending = null;
    this.lastChange = null;
    this.endedAt = null;
    this.isFollowed = false;
    /** When the stream reported the key last. */
    this.streamedAt = null;
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
    this.display = facts.display ?? null;
    this.isReadOnly = facts.read_only ?? false;
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

  isUrgent(value) { return this.urgent.some((urgent) => same(urgent, value)); }

  /** Records a requested change; `value` is undefined if the gateway computes it. */
  ask(value, now, isUrgent = this.isUrgent(value)) {
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
    this.asked = isUrgent || due <= now ? { name: "sending" } : { name: "settling", due, span: this.span };
  }

  /** Records that a change is handed over. */
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
  arrived(id) {
    this.landed = id;
    if (id === this.newest) this.unsent = false;
  }

  /** Records that a change is not executed. Nobody misses an older value, but an older press. */
  refused(id, reason, now, isMoment = false) {
    if (id !== this.newest) {
      if (isMoment) this.missed = { reason, at: now };
      return;
    }
    this.unsent = false;
    const value = this.draft;
    this.isAccepted = true;
    this.awaitsRow = false;
    this.asked = null;
    if (!this.held) this.draft = undefined;
    this.refusal = { value, reason, at: now };
  }

  /** Records that a typed text was not understood. */
  misread(reason, now) { this.refusal = { value: undefined, reason, at: now }; }

  release() {
    if (!this.isAccepted || this.awaitsRow) return;
    this.asked = null;
    if (!this.held) this.draft = undefined;
  }

  // Messages from the gateway

  /** Whether the stream has reported the key since `askedAt`. */
  isNewer(askedAt) { return this.streamedAt !== null && this.streamedAt >= askedAt; }

  /**
   * Applies the state of the key. One that was requested at `askedAt` may be older than what the stream has
   * reported since; the stream also reports whatever is newer.
   */
  row(row, now, askedAt = null) {
    if (askedAt === null) this.streamedAt = now;
    else if (this.isNewer(askedAt)) return;
    this.target = row.target ?? null;
    this.actual = row.actual ?? null;
    this.phase = row.phase ?? null;
    this.endedAt = row.age_ms === null || row.age_ms === undefined ? null : now - row.age_ms;
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
    const most = this.isFollowed ? FOLLOWED_HISTORY : HISTORY;
    if (this.history.length > most) this.history.splice(0, this.history.length - most);
    const isNewest = event.id === this.newest;
    switch (event.phase) {
      case "accepted":
        if (isNewest) {
          this.unsent = false;
          this.answered(event.id);
        } else if (this.isAccepted) {
          this.isOwn = false;
        }
        this.reason = null;
        this.refusal = null;
        break;
      case "rejected":
        this.refused(event.id, event.reason ?? t("refused"), now);
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
    if (this.missed && now - this.missed.at < FADE) return { name: "failed", reason: this.missed.reason };
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
          reason: this.failure?.reason || this.reason || t(this.phase === "expired" ? "tooLong" : "notConfirmed"),
          value: this.failure ? this.failure.value : this.target,
          isExpired: this.phase === "expired",
        };
      case "superseded":
      case "cancelled":
        return { name: this.phase, reason: this.reason };
      default: return { name: "idle" };
    }
  }

  /** Whether the result of the newest change is still shown. */
  isFresh(now) { return this.endedAt !== null && now - this.endedAt < FADE; }

  /** When what is shown for a while is over. */
  fadesAt(now) { return Math.max(this.missed?.at ?? -Infinity, this.isFresh(now) ? this.endedAt : -Infinity) + FADE; }

  /** Whether "Send now" would send the value: what is held for its device is not. */
  canFlush(now) {
    const { name, waits } = this.progress(now);
    return this.device.online && (name === "settling" || (name === "waiting" && !HELD.has(waits)));
  }

  /** Whether a value is not sent yet. */
  isOpen(now) {
    const name = this.progress(now).name;
    return name === "settling" || name === "waiting" || name === "unsent";
  }
}

/** How a key is called where its device is not clear. */
export function labelOf(key) { return `${key.device.name}, ${key.name ?? readable(key.id)}`; }
