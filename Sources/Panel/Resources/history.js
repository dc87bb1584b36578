// Settle
// SPDX-License-Identifier: Apache-2.0

// What a device reported of a property over the last hours, with axes: across is the time, up is the value.

import { h, say, set, svg } from "./dom.js";
import { outward, spoken, textOf, typed, unitOf } from "./values.js";
import { language, t } from "./words.js";

const HOUR = 3_600_000;
/** The shortest and the longest time that is shown. */
const SHORTEST = 10 * 60_000;
const LONGEST = 24 * HOUR;
/** The most points that are drawn; the gateway has fewer, and reports follow. */
const POINTS = 400;
/** The distances of times on the axis. */
const TIMES = [2, 5, 10, 15, 30, 60, 120, 180, 360].map((minutes) => minutes * 60_000);
const HEIGHT = 132;
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 8, 8, 22];
/** How often the picture moves on, in milliseconds. */
const EVERY = 15_000;

export class History {
  constructor(link) {
    this.link = link;
    this.key = null;
    this.points = [];
    /** How many points the picture has. */
    this.drawn = 0;
    this.timer = 0;
    this.title = h("figcaption", { class: "history-title" });
    this.plot = svg("svg", { class: "history-plot", role: "img" });
    this.node = h("figure", { class: "history", hidden: true }, this.title, this.plot);
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  /** Shows a property's history; nothing where there is none. */
  async show(key) {
    this.forget();
    if (!key || !["number", "integer", "boolean"].includes(key.type)) return;
    this.key = key;
    let answer;
    try {
      answer = await this.link.get(`v1/history?key=${encodeURIComponent(key.key)}`);
    } catch {
      // The connection's state is shown in the bar.
      return;
    }
    if (this.key !== key) return;
    const now = performance.now();
    this.points = answer.points.map((point) => ({ at: now - point.age_ms, value: numberOf(key, point.value) }));
    this.node.hidden = this.points.length === 0;
    this.update(now);
    this.timer = setInterval(() => this.draw(), EVERY);
  }

  forget() {
    clearInterval(this.timer);
    this.key = null;
    this.points = [];
    this.drawn = 0;
    this.node.hidden = true;
  }

  /** Adds what the device reports now. */
  update(now) {
    const { key, points } = this;
    if (this.node.hidden || points.length === 0) return;
    const value = numberOf(key, key.actual);
    if (value !== null && value !== points.at(-1).value) {
      points.push({ at: now, value });
      if (points.length > POINTS) points.shift();
    } else if (this.drawn === points.length) return;
    this.draw();
  }

  draw() {
    const { key, points, plot } = this;
    const width = plot.clientWidth;
    if (this.node.hidden || width === 0) return;
    this.drawn = points.length;
    const now = performance.now();
    const span = Math.min(LONGEST, Math.max(SHORTEST, now - points[0].at));
    const from = now - span;
    // The value in force at the beginning is that of the point before it.
    const first = Math.max(0, points.findLastIndex((point) => point.at <= from));
    const shown = points.slice(first);
    const scale = scaleOf(key, shown.map((point) => point.value));
    const x = (at) => LEFT + ((Math.max(at, from) - from) / span) * (width - LEFT - RIGHT);
    const y = (value) => TOP + (1 - (value - scale.low) / (scale.high - scale.low)) * (HEIGHT - TOP - BOTTOM);
    const text = (name, px, py, content) => {
      const node = svg("text", { class: name, x: px.toFixed(1), y: py.toFixed(1) });
      node.textContent = content;
      return node;
    };
    const grid = scale.ticks.flatMap((value) => [
      svg("path", { class: "history-grid", d: `M${LEFT} ${y(value).toFixed(1)}H${width - RIGHT}` }),
      text("history-value", LEFT - 8, y(value), scale.label(value)),
    ]);
    const times = timesOf(from, span, width).flatMap(({ at, label }) => [
      svg("path", { class: "history-grid", d: `M${x(at).toFixed(1)} ${HEIGHT - BOTTOM}v4` }),
      text("history-time", x(at), HEIGHT - 5, label),
    ]);
    const line = shown.map(({ at, value }, place) => `${place === 0 ? "M" : "H"}${x(at).toFixed(1)}${place === 0 ? " " : "V"}${y(value).toFixed(1)}`).join("") + `H${x(now).toFixed(1)}`;
    const base = HEIGHT - BOTTOM;
    plot.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    plot.replaceChildren(...grid, ...times, svg("path", { class: "history-area", d: `${line}V${base}H${x(shown[0].at).toFixed(1)}Z` }), svg("path", { class: "history-line", d: line }));
    this.describe(shown);
  }

  describe(shown) {
    const { key } = this;
    const values = shown.map((point) => point.value);
    const textFor = (number) => (key.type === "boolean" ? textOf(key, number > 0) : withUnit(key, number));
    const [least, most] = [textFor(Math.min(...values)), textFor(Math.max(...values))];
    say(this.title, least === most || key.type === "boolean" ? t("history") : `${t("history")} · ${least} – ${most}`);
    set(this.plot, "aria-label", t("historySpoken", least, most, spoken(key, key.actual)));
  }
}

/** A value as it is drawn: as people read it, and 1 for on. */
function numberOf(key, value) {
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "number" ? outward(key, value) : null;
}

function withUnit(key, number) {
  const text = typed(number, Number.isInteger(number) ? 0 : 1);
  return unitOf(key) ? `${text} ${unitOf(key)}` : text;
}

/** The range of the axis, its ticks, and their texts. */
function scaleOf(key, values) {
  if (key.type === "boolean") return { low: -0.15, high: 1.15, ticks: [0, 1], label: (value) => t(value ? "on" : "off") };
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const step = niceStep((most - least || Math.abs(most) * 0.1 || 1) / 3);
  const low = Math.floor(least / step + 1e-9) * step;
  const high = Math.max(Math.ceil(most / step - 1e-9) * step, low + step);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = Array.from({ length: Math.round((high - low) / step) + 1 }, (_, count) => low + count * step);
  return { low, high, ticks, label: (value) => typed(value, decimals) };
}

/** The least of 1, 2 and 5, times a power of ten, that is not below `least`. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((factor) => factor * power >= least * 0.999) * power;
}

/** Times of day for the axis, at round distances and not closer than their texts. */
function timesOf(from, span, width) {
  const step = TIMES.find((time) => (time / span) * (width - LEFT - RIGHT) >= 72) ?? TIMES.at(-1);
  const format = new Intl.DateTimeFormat(language, { hour: "numeric", minute: "2-digit" });
  // Of the page's clock, whose zero is no round time.
  const wall = Date.now() - performance.now();
  const zone = new Date().getTimezoneOffset() * 60_000;
  const times = [];
  for (let at = Math.ceil((wall + from - zone) / step) * step + zone - wall; at <= from + span; at += step) {
    const place = ((at - from) / span) * (width - LEFT - RIGHT);
    if (place > 12 && place < width - LEFT - RIGHT - 16) times.push({ at, label: format.format(new Date(wall + at)) });
  }
  return times;
}
