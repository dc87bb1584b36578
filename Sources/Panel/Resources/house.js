// Settle
// SPDX-License-Identifier: Apache-2.0

// All devices, as the gateway lists them. It uses neither network nor DOM.

import { Key } from "./key.js";

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
      id: facts.id, name: facts.name, area: facts.area ?? null, isGroup: Boolean(facts.members),
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
