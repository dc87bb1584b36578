// Settle
// SPDX-License-Identifier: Apache-2.0

// One property: its values, and the progress of its newest change. It uses neither network nor DOM. Times
// are milliseconds of performance.now().

import { hexOf, hexOfKelvin, legible, readable, same, short, spoken } from "./values.js";
import { t } from "./words.js";

/** The maximum number of events for the timeline of a key that somebody looks at, and of any other. */
const FOLLOWED_HISTORY = 240;
const HISTORY = 12;
/** How many milliseconds after its due time a value still counts as settling. */
export const OVERDUE = 250;
/** The progress of what has left. */
const LEFT = new Set(["sending", "sent", "done", "confirmed"]);
/** What a value waits for that is held for its device. */
const HELD = new Set(["offline", "unknown", "asleep"]);
/** The phases in which a command ends. */
export const ENDS = new Set(["confirmed", "failed", "expired", "superseded", "unchanged", "cancelled"]);
/** Changes of one page that are closer than this, in milliseconds, are one gesture. */
const GESTURE = 3000;
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
    /** The value before the newest gesture. */
    this.before = null;
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
    this.class = facts.class ?? classOf(this);
    // Zigbee2MQTT reports true of a closed contact; a lock that is only read is on when it is open.
    this.isReversed = facts.reversed || (this.isReadOnly && this.class === "lock");
    // What is on is said in the words of its class: locked, open, wet.
    this.isWorded = this.type === "boolean" && (this.isReadOnly || this.class === "lock");
    this.isHeard = facts.heard !== false;
    this.topic = facts.state_topic ?? null;
  }

  /** The longest time, in milliseconds, that a value usually waits. */
  get span() { return Math.max(this.delay, this.minInterval); }

  /** The shown value: the draft, otherwise the target, otherwise the actual value. */
  get shown() {
    return this.draft !== undefined ? this.draft : this.target ?? this.actual ?? null;
  }

  /** Whether a class is on: an open door, a leak, a locked lock. */
  get isActive() { return typeof this.shown === "boolean" && this.shown !== this.isReversed; }

  /** What people should know: "alarm", "open", "low" of a battery; null if there is nothing. */
  get notice() {
    if (this.class === "battery" && this.isReadOnly) {
      const isLow = this.type === "boolean" ? this.isActive : typeof this.shown === "number" && this.shown <= LOW;
      return isLow ? "low" : null;
    }
    if (!this.isWorded || typeof this.shown !== "boolean") return null;
    if (this.class === "lock") return this.isActive ? null : "open";
    if (!this.isActive) return null;
    return ALARMS.has(this.class) ? "alarm" : OPENINGS.has(this.class) ? "open" : null;
  }

  /** The actual value if it differs from the shown one, otherwise null. */
  get elsewhere() {
    return this.actual !== null && this.actual !== undefined && !same(this.actual, this.shown) ? this.actual : null;
  }

  // Changes of this page

  isUrgent(value) { return this.urgent.some((urgent) => same(urgent, value)); }

  /** Records a requested change; `value` is undefined if the gateway computes it. */
  ask(value, now, isUrgent = this.isUrgent(value)) {
    // Changes of one gesture are undone together.
    if (this.lastChange === null || now - this.lastChange > GESTURE) this.before = this.shown;
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
    this.isHeard = row.heard !== false;
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

  /** Whether what this page changed has left, and can be taken back for a while. */
  canGoBack(now) {
    const isValue = this.type !== "boolean" && this.type !== "action" && this.before !== null;
    if (!isValue || !this.isOwn || this.held || this.lastChange === null || now - this.lastChange >= FADE) return false;
    return LEFT.has(this.progress(now).name) && !same(this.before, this.shown);
  }

  /** Whether a value is not sent yet. */
  isOpen(now) {
    const name = this.progress(now).name;
    return name === "settling" || name === "waiting" || name === "unsent";
  }
}

/** How a key is called where its device is not clear. */
export function labelOf(key) { return `${key.device.label ?? key.device.name}, ${key.name ?? readable(key.id)}`; }

// What a property is for. The gateway says it where a file does; names that devices use say it otherwise.

/** A battery with this much, in percent, or less is low. */
const LOW = 15;
const ALARMS = new Set(["moisture", "smoke", "gas", "carbon_monoxide", "problem", "safety", "tamper"]);
/** What can be open: the classes of readings and those of covers. */
export const OPENINGS = new Set(["door", "window", "opening", "garage_door", "garage", "gate"]);
const READINGS = {
  contact: "door", door: "door", window: "window", opening: "opening", occupancy: "occupancy", presence: "presence", motion: "motion",
  moving: "moving", vibration: "vibration", water_leak: "moisture", leak: "moisture", smoke: "smoke", gas: "gas",
  carbon_monoxide: "carbon_monoxide", tamper: "tamper", battery_low: "battery", charging: "battery_charging", problem: "problem",
  fault: "problem", update_available: "update", running: "running",
};

function classOf({ id, type, isReadOnly, unit }) {
  const name = id.toLowerCase();
  if (type === "boolean") return isReadOnly ? READINGS[name] ?? null : /^lock(ed)?$/.test(name) ? "lock" : null;
  if (!isReadOnly) return null;
  if (unit === "%" && /battery/.test(name)) return "battery";
  return unit === "°C" || unit === "°F" ? "temperature" : null;
}

/** Whether a change opens what was locked: the page asks before it requests that. */
export function unlocks(key, value) {
  if (key.type === "boolean") return key.class === "lock" && value === key.isReversed;
  return (key.type === "choice" || key.type === "action") && /^(unlock|unlatch)/i.test(value);
}

// All devices, as the gateway lists them. It uses neither network nor DOM.

/** How many keys have a long history at once. */
const FOLLOWED = 24;

export class House {
  constructor() {
    this.devices = [];
    this.scenes = [];
    this.keys = new Map();
    /** Keys of devices that the panel does not show. */
    this.hidden = new Set();
    this.totals = { changes: 0, commands: 0 };
    this.hasBroker = true;
    this.followed = [];
    this.offset = null;
  }

  /**
   * Loads a snapshot that was requested at `askedAt`. A device whose description is the same as before stays the
   * same object. Returns true if any device or property is another one.
   */
  load(answer, now, askedAt) {
    this.hasBroker = answer.broker?.connected ?? true;
    const old = new Map(this.devices.map((device) => [device.id, device]));
    const scenes = answer.scenes ?? [];
    const shown = answer.devices.filter((device) => device.panel !== false);
    let isOther = shown.length !== this.devices.length || JSON.stringify(scenes) !== JSON.stringify(this.scenes);
    this.scenes = scenes;
    this.devices = shown.map((facts, place) => {
      const shape = shapeOf(facts);
      const known = old.get(facts.id);
      isOther ||= this.devices[place]?.id !== facts.id || known?.shape !== shape;
      return known?.shape === shape ? known : this.device(facts, shape);
    });
    this.hidden = new Set(answer.devices.filter((device) => device.panel === false)
      .flatMap((device) => Object.values(device.properties).map((row) => row.key)));
    this.keys = new Map(this.devices.flatMap((device) => device.keys.map((key) => [key.key, key])));
    // Where several devices have one name, the name of the area goes with it.
    const named = new Map();
    const groups = this.devices.filter((device) => device.isGroup);
    for (const device of this.devices) device.groups = groups.filter((group) => group.members.includes(device.id));
    for (const { name } of this.devices) named.set(name, (named.get(name) ?? 0) + 1);
    for (const device of this.devices) device.label = device.area && named.get(device.name) > 1 ? `${device.area} ${device.name}` : device.name;
    shown.forEach((facts, place) => {
      const device = this.devices[place];
      if (!device.keys.some((key) => key.isNewer(askedAt))) device.online = facts.online;
      for (const row of Object.values(facts.properties)) {
        const key = this.keys.get(row.key);
        if (key.landed === key.newest && !key.isNewer(askedAt)) key.answered(key.newest);
        key.row(row, now, askedAt);
      }
    });
    return isOther;
  }

  device(facts, shape) {
    const device = {
      id: facts.id, name: facts.name, label: facts.name, class: facts.class ?? null, area: facts.area ?? null, isGroup: Boolean(facts.members),
      members: facts.members ?? [], online: facts.online, shape, keys: [],
    };
    for (const [id, row] of Object.entries(facts.properties)) {
      const known = this.keys.get(row.key);
      const key = known && known.type === row.type ? known : new Key(row, device, id);
      key.device = device;
      key.describe(row);
      device.keys.push(key);
    }
    return device;
  }

  /** The key called `name`; null if it is unknown. */
  find(name) { return this.keys.get(name) ?? null; }

  /** The keys of a group's members that a key of the group changes. */
  membersOf(key) { return key.device.members.map((id) => this.keys.get(`${id}/${key.id}`)).filter((member) => member); }

  /** Keeps a long history of a key from now on, and of few others. */
  follow(key) {
    if (this.followed[0] === key) return;
    this.followed = [key, ...this.followed.filter((other) => other !== key)];
    key.isFollowed = true;
    for (const other of this.followed.splice(FOLLOWED)) other.isFollowed = false;
  }

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

/** What a snapshot says about a device apart from its state. */
function shapeOf(facts) {
  const { online, properties, ...fixed } = facts;
  return JSON.stringify([fixed, Object.entries(properties).map(([id, row]) => {
    const { target, actual, phase, age_ms, heard, online, pending, failure, ...rest } = row;
    return [id, rest];
  })]);
}

// What kind of tile a device has, and which of its properties the tile shows.

const UP_DOWN = { open: "up", up: "up", close: "down", down: "down", stop: "stop", halt: "stop", pause: "stop" };

/** Whether an action moves a cover. */
export function isMovement(key) {
  return key.type === "action" && Boolean(key.values?.length) && key.values.every((word) => UP_DOWN[word.toLowerCase()]);
}

/** The direction of a cover's word: up, stop or down. */
export function directionOf(word) { return UP_DOWN[word.toLowerCase()]; }

/** The words of a cover in the order of its buttons: up, stop, down. */
export function inOrder(words) {
  const place = (word) => ["up", "stop", "down"].indexOf(directionOf(word));
  return [...words].sort((a, b) => place(a) - place(b));
}

/**
 * The plan of a device's tile: its `kind`, its `main` property, which the tile changes directly, its `power`,
 * and the others by what they are. Names decide where types alone do not.
 */
export function planOf(device) {
  const writable = device.keys.filter((key) => !key.isReadOnly);
  const readings = device.keys.filter((key) => key.isReadOnly);
  const find = (test) => writable.find(test) ?? null;
  const isNumber = (key) => key.type === "number" || key.type === "integer";
  const named = (pattern) => find((key) => isNumber(key) && key.range && pattern.test(key.id));
  const booleans = writable.filter((key) => key.type === "boolean");
  const plan = {
    readings,
    power: booleans.find((key) => /^(power|state|on|on_?off|switch|relay|light|output)/i.test(key.id)) ?? (booleans.length === 1 ? booleans[0] : null),
    brightness: named(/bright|dim|luminance/i),
    white: named(/colou?r_?temp|^ct$|mired|kelvin/i),
    color: find((key) => key.type === "color"),
    mode: find((key) => key.type === "choice"),
    movement: find(isMovement),
    position: named(/position|lift/i),
    setpoint: find((key) => isNumber(key) && /setpoint|set_?point|(target|desired|occupied).*temp/i.test(key.id)),
    actual: readings.find((key) => /temp/i.test(key.id)) ?? null,
    lock: booleans.find((key) => key.class === "lock") ?? null,
    battery: readings.find((key) => key.class === "battery") ?? null,
    // A boolean that stands for the whole tile: a door, a leak.
    sense: readings.find((key) => key.isWorded && key.class && key.class !== "battery") ?? null,
    class: device.class,
  };
  const [kind, main] = plan.setpoint ? ["climate", plan.setpoint]
    : plan.movement || plan.position ? ["cover", plan.position ?? plan.movement]
      : plan.brightness || plan.color || plan.white ? ["light", plan.brightness ?? plan.white ?? plan.color]
        : other(writable, plan, isNumber);
  const isLamp = kind === "switch" && (device.class === "lamp" || main.class === "lamp" || /^light$/i.test(main.id));
  return { ...plan, kind, main, isLamp };
}

function other(writable, plan, isNumber) {
  if (plan.lock) return ["lock", plan.lock];
  const number = writable.find((key) => isNumber(key) && key.range) ?? writable.find(isNumber);
  if (number) return ["number", number];
  if (plan.power) return ["switch", plan.power];
  const main = writable[0] ?? null;
  return [main ? main.type : "reading", main];
}

/** What people should know of a device: "alarm", "open", "low"; null if there is nothing. */
export function noticeOf(device, plan) {
  const all = device.keys.map((key) => key.notice);
  if (isOpenCover(plan)) all.push("open");
  return ["alarm", "open", "low"].find((notice) => all.includes(notice)) ?? null;
}

/** Whether a cover is open that should not stay so, such as a garage door. */
export function isOpenCover({ kind, main, position, movement, class: name }) {
  if (kind !== "cover" || ![name, main.class, movement?.class].some((each) => OPENINGS.has(each)) || !position) return false;
  return typeof position.shown === "number" && position.shown > position.range[0];
}

/**
 * What sums up the house, most important first: `{ name, text, notice, devices }`, which each filter the page. `planned` has
 * the plan of each device.
 */
export function sumsOf(planned) {
  const own = [...planned].filter(([device]) => !device.isGroup);
  const sums = [];
  const add = (name, text, found, notice = null) => {
    if (found.length > 0) sums.push({ name, text, notice, devices: new Set(found.map(([device]) => device)) });
  };
  const noticed = (notice) => own.filter(([device, plan]) => device.keys.some((key) => key.notice === notice) || (notice === "open" && isOpenCover(plan)));
  // A few by their names, more by their number.
  const each = (notice, text, many) => {
    const found = noticed(notice);
    if (found.length > FEW) return add(notice, many(found.length), found, notice);
    for (const one of found) add(`${notice}:${one[0].id}`, text(placeOf(one[0]), one[0].keys.find((key) => key.notice === notice)), [one], notice);
  };
  each("alarm", (name, key) => `${name}: ${spoken(key, key.shown)}`, (count) => t("alarms", count));
  each("open", (name, key) => `${name} ${(key ? spoken(key, key.shown) : t("open")).toLowerCase()}`, (count) => t("openMany", count));
  const doors = own.filter(([, plan]) => plan.lock || [plan.class, plan.sense?.class].some((name) => OPENINGS.has(name)));
  if (noticed("open").length === 0) add("closed", t("allClosed"), doors);
  const lamps = own.filter(([, plan]) => plan.kind === "light" || plan.isLamp);
  const lit = lamps.filter(([, plan]) => isOn(plan));
  add("lamps", t("lampsOn", lit.length), lit.length > 0 ? lit : lamps);
  const warm = own.map((one) => [...one, one[0].keys.find((key) => isWarmth(key) && typeof key.shown === "number")])
    .filter(([, , key]) => key).sort((a, b) => a[2].shown - b[2].shown);
  const middle = warm[warm.length >> 1]?.[2];
  if (middle) add("warm", short(middle, middle.shown), warm);
  each("low", (name, key) => t("lowBattery", name, spoken(key, key.shown).toLowerCase()), (count) => t("lowBatteries", count));
  return sums;
}

/** What a device contributes to the sums, as a text: the sums of the same texts are the same. */
export function partOf(device, plan) {
  const told = device.keys.filter((key) => key.notice || isWarmth(key)).map((key) => [key.key, key.notice, key.shown]);
  return JSON.stringify([isOn(plan), isOpenCover(plan), told]);
}

function isWarmth(key) { return key.class === "temperature" && /^(local_|current_|room_)?temperature$/i.test(key.id); }

/** The most that are named one by one. */
const FEW = 2;

/** A device's name with its area, where the name is one word, as "Window". */
function placeOf({ name, area, label }) { return area && label === name && !/\s/.test(name) ? `${area} ${name}` : label; }

/** Whether a device is on. */
export function isOn(plan) {
  if (plan.power) return plan.power.shown === true;
  return plan.kind === "light" && (typeof plan.main.shown !== "number" || plan.main.shown > 0);
}

/** The color of a lamp's light on a screen, bright enough for dark text. */
export function lightOf(plan) {
  const { color, white } = plan;
  // A lamp is in one mode: what was changed last says which.
  const newest = color && white ? ((color.endedAt ?? 0) >= (white.endedAt ?? 0) ? color : white) : color ?? white;
  if (newest && newest === color) {
    const text = hexOf(color.shown);
    if (text) return legible(text);
  }
  if (newest && newest === white && typeof white.shown === "number" && white.shown > 0) {
    return legible(hexOfKelvin(white.shown < 1000 ? 1e6 / white.shown : white.shown));
  }
  return "#ffcf7a";
}

// The areas of the house, and the order of devices that was chosen.

export class Order {
  constructor(choices) { this.choices = choices; }

  /** Whether a device is among the "favourites" or the "hidden" ones. */
  has(list, device) { return this.choices.get(list, []).includes(device.id); }

  toggle(list, device) {
    const all = this.choices.get(list, []);
    this.choices.set(list, this.has(list, device) ? all.filter((id) => id !== device.id) : [...all, device.id]);
  }

  /** Moves a device to the place of another one of its section. */
  move(device, other, section) {
    const ids = section.map((one) => one.id);
    ids.splice(ids.indexOf(other.id), 0, ...ids.splice(ids.indexOf(device.id), 1));
    const rest = this.choices.get("order", []).filter((id) => !ids.includes(id));
    this.choices.set("order", [...rest, ...ids]);
  }

  /** The sections of the page: favourites, the areas, and what is in none. */
  sections(devices) {
    const chosen = new Map(this.choices.get("order", []).map((id, place) => [id, place]));
    const placeOf = (device) => chosen.get(device.id) ?? chosen.size;
    const sections = new Map();
    const add = (name, slug, device) => {
      if (!sections.has(slug)) sections.set(slug, { name, slug, devices: [] });
      sections.get(slug).devices.push(device);
    };
    const hasAreas = devices.some((device) => device.area);
    const others = devices.filter((one) => !this.has("favourites", one));
    for (const device of devices.filter((one) => this.has("favourites", one))) add(t("favourites"), "favourites", device);
    for (const device of others.filter((one) => one.area)) add(device.area, slugOf(device.area), device);
    for (const device of others.filter((one) => !one.area)) add(hasAreas ? t("otherArea") : t("devices"), "devices", device);
    // The areas stay in their order.
    for (const section of sections.values()) section.devices.sort((a, b) => placeOf(a) - placeOf(b));
    return [...sections.values()];
  }
}

/** The name of an area in an address: Living Room becomes living-room. */
export function slugOf(name) {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "area";
}
