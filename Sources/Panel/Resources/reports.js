// Settle
// SPDX-License-Identifier: Apache-2.0

// What devices reported over the last day: read from the gateway, followed from then on, and drawn in tiles.

import { h, say, set, svg } from "./dom.js";
import { duration, outward, rounded, textOf, unitOf } from "./values.js";
import { t } from "./words.js";

const DAY = 24 * 3_600_000;
/** The most keys of one question. */
const KEYS = 64;
/** The most points of a key; the gateway has fewer, and reports follow. */
const POINTS = 400;
/** The least distance of points of a number, in milliseconds, as at the gateway. */
const APART = 5000;
/** How long a day waits for others that come onto the page, so that one question is for all. */
const GATHER = 200;
/** How often days are read again. */
const AGAIN = 300_000;
/** How old an answer may be when somebody asks when a device was heard last. */
const FRESH = 10_000;
/** The least time between two drawings of a day. */
const PACE = 1000;

/** Whether the gateway has a history of a property. */
export function hasHistory(key) { return ["number", "integer", "boolean"].includes(key.type); }

/** A value as it is drawn: as people read it, and 1 for on. */
export function numberOf(key, value) {
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "number" ? outward(key, value) : null;
}

/** The points from a time on, with the one that is in force then. */
export function since(points, from) { return points.slice(Math.max(0, points.findLastIndex((point) => point.at <= from))); }

export class Reports {
  constructor(link) {
    this.link = link;
    /** The points of each key that was read, `{ at, value }`, the oldest first. */
    this.points = new WeakMap();
    /** When the device of each reported it last, and when that was read. */
    this.heard = new WeakMap();
    /** The keys that need not be read again yet. */
    this.known = new WeakSet();
    /** The days on the page, by their keys. */
    this.days = new Map();
    this.timer = 0;
    setInterval(() => { if (document.visibilityState === "visible") this.renew(); }, AGAIN);
  }

  of(key) { return this.points.get(key) ?? []; }

  /** When the device reported a key last; reads that again if it is not known from now. */
  heardAt(key) {
    const { at = null, readAt = -Infinity } = this.heard.get(key) ?? {};
    if (readAt < performance.now() - FRESH) {
      this.heard.set(key, { at, readAt: performance.now() });
      this.known.delete(key);
      this.gather();
    }
    return at;
  }

  /** The day of a tile comes onto the page, or leaves it. */
  see(day, isSeen) {
    if (!isSeen) return this.days.delete(day.key);
    this.days.set(day.key, day);
    day.plan();
    this.gather();
  }

  /** Reads the days on the page again, and others when they are on it. */
  renew() {
    this.known = new WeakSet();
    this.gather();
  }

  gather() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.read([...this.days.keys()].filter((key) => !this.known.has(key)));
    }, GATHER);
  }

  /** Reads what the gateway knows of keys; of those that it does not answer for, nothing is shown. */
  async read(keys) {
    for (const key of keys) this.known.add(key);
    for (let from = 0; from < keys.length; from += KEYS) {
      const some = keys.slice(from, from + KEYS);
      try {
        const answer = await this.link.get(`v1/history?${some.map((key) => `key=${encodeURIComponent(key.key)}`).join("&")}`);
        const now = performance.now();
        for (const key of some) {
          const age = some.length > 1 ? answer.ages_ms?.[key.key] : answer.age_ms;
          this.heard.set(key, { at: age === undefined ? null : now - age, readAt: now });
          this.keep(key, (some.length > 1 ? answer.keys?.[key.key] : answer.points) ?? [], now);
        }
      } catch {
        // The connection's state is shown in the bar; the next tile that comes asks for them too.
        for (const key of some) this.known.delete(key);
      }
    }
  }

  keep(key, points, now) {
    this.points.set(key, points.map(({ age_ms: age, value }) => ({ at: now - age, value: numberOf(key, value) })));
    this.take(key, now);
    this.days.get(key)?.plan();
  }

  /** Adds what the device reports now to what was read. */
  take(key, now) {
    const points = this.of(key);
    const value = numberOf(key, key.actual);
    if (points.length === 0 || value === null || value === points.at(-1).value) return;
    this.heard.set(key, { at: now, readAt: now });
    // While a number changes quickly, the newest point follows it.
    if (key.type !== "boolean" && points.at(-2)?.at > now - APART) points.pop();
    points.push({ at: now, value });
    if (points.length > POINTS) points.shift();
    this.days.get(key)?.plan();
  }
}

/**
 * The last day of a property in its tile: a line, or a band of the times when it was on. Touched, hovered or focused, the
 * figures give way to the least and the greatest value, and to the time of the last report.
 */
export class Day {
  constructor(key, reports) {
    this.key = key;
    this.reports = reports;
    this.drawnAt = -PACE;
    this.timer = 0;
    /** The figures in words, and the day. */
    this.figures = "";
    this.words = "";
    this.line = svg("path");
    this.base = svg("path", { class: "day-base" });
    this.plot = svg("svg", {
      class: "day", viewBox: "0 0 1440 100", preserveAspectRatio: "none", "aria-hidden": "true", "data-type": key.type,
    }, this.base, this.line);
    this.range = h("span", { "data-long": true });
    this.unit = h("span", { class: "reading-unit" });
    this.last = h("small");
    this.told = h("span", { class: "reading-cell day-told" }, h("b", {}, this.range, this.unit), this.last);
  }

  /** A button around the figures: whoever presses it has the focus on it. */
  around(cells) {
    const tell = () => this.tell();
    this.node = h("button", {
      type: "button", class: "tile-body readings", tabindex: -1, onfocus: tell, onpointerenter: tell,
    }, ...cells, this.told, this.plot);
    return this.node;
  }

  /** Names the button by the figures in it. */
  name(figures) {
    if (this.figures === figures) return;
    this.figures = figures;
    this.tell();
  }

  /** Draws now, or when the last drawing is long enough ago. */
  plan() {
    const rest = this.drawnAt + PACE - performance.now();
    if (rest <= 0) return this.draw();
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.plan();
    }, Math.ceil(rest));
  }

  draw() {
    const { key } = this;
    const now = performance.now();
    const points = since(this.reports.of(key), now - DAY);
    if (points.length === 0) return;
    this.drawnAt = now;
    // Across are minutes.
    const places = points.map(({ at, value }) => ({ x: Math.max(0, 1440 - (now - at) / 60_000), value }));
    if (key.type === "boolean") this.drawBand(places);
    else this.drawLine(places);
    // There is something to tell.
    set(this.node, "data-day", "");
    set(this.node, "tabindex", null);
    this.tell();
  }

  drawLine(places) {
    const { key } = this;
    const [least, most] = extremes(places);
    // What hardly changes looks so.
    const room = Math.max(most - least, 0.04 * Math.max(Math.abs(least), Math.abs(most)), 1e-9);
    const y = (value) => (50 - ((value - (least + most) / 2) / room) * 100).toFixed(1);
    const steps = places.map(({ x, value }, place) => (place === 0 ? `M${x.toFixed(1)} ${y(value)}` : `H${x.toFixed(1)}V${y(value)}`));
    set(this.line, "d", `${steps.join("")}H1440`);
    // A dot at the end of what is long enough to be a line.
    set(this.base, "d", places[0].x > 1430 ? "" : `M1440 ${y(places.at(-1).value)}h.01`);
    say(this.range, `${rounded(key, least)}\u2009–\u2009${rounded(key, most)}`);
    say(this.unit, unitOf(key) ? ` ${unitOf(key)}` : "");
    this.words = t("day", withUnit(key, least), withUnit(key, most));
  }

  drawBand(places) {
    const { key } = this;
    const ends = [...places.slice(1).map(({ x }) => x), 1440];
    const spans = places.map(({ x, value }, place) => ({ x, end: ends[place], value }));
    const active = spans.filter(({ value }) => value > 0 !== key.isReversed);
    set(this.line, "d", active.map(({ x, end }) => `M${x.toFixed(1)} 50H${end.toFixed(1)}`).join(""));
    set(this.base, "d", "M0 50H1440");
    const minutes = Math.ceil(active.reduce((sum, { x, end }) => sum + end - x, 0));
    const text = `${textOf(key, !key.isReversed)} ${minutes < 2 ? t("min", minutes) : roughly(minutes * 60_000)}`;
    say(this.range, text);
    this.words = t("day", text);
  }

  /** Says when the device was heard last, or when the last change was, and all of it to screen readers. */
  tell() {
    const last = this.reports.of(this.key).at(-1);
    const heard = this.node.matches(":focus, :hover") ? this.reports.heardAt(this.key) : this.reports.heard.get(this.key)?.at ?? null;
    if (heard !== null) say(this.last, t("seen", roughly(performance.now() - heard)));
    else if (last) say(this.last, t("changed", roughly(performance.now() - last.at)));
    const parts = [`${this.key.device.label}: ${this.figures}`, this.words, this.last.textContent];
    set(this.node, "aria-label", parts.filter((part) => part).join("; "));
  }
}

export function extremes(points) {
  const values = points.map((point) => point.value);
  return [Math.min(...values), Math.max(...values)];
}

export function withUnit(key, number) { return unitOf(key) ? `${rounded(key, number)} ${unitOf(key)}` : rounded(key, number); }

/** A time in whole seconds, minutes or hours. */
function roughly(time) {
  return time < 7_200_000 ? duration(Math.max(1, Math.round(time / 1000)) * 1000) : t("h", Math.round(time / 3_600_000));
}
