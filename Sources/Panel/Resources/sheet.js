// Settle
// SPDX-License-Identifier: Apache-2.0

// The open device: all its properties with fine controls, what became of recent changes, its place.

import { controlFor, shareOf } from "./controls.js";
import { h, hide, icon, say, set, svg, vanish } from "./dom.js";
import { ENDS, FADE, labelOf, lightOf, planOf } from "./house.js";
import { adviceFor, failureText, Mark, OVER, statusText } from "./mark.js";
import { extremes, hasHistory, since, withUnit } from "./reports.js";
import { changes, commands, duration, readable, spoken, textOf, typed } from "./values.js";
import { locale, t } from "./words.js";

export class Sheet {
  constructor(dialog, app) {
    this.dialog = dialog;
    this.app = app;
    this.device = null;
    this.rows = new Map();
    this.title = h("h2", { id: "sheet-title", dir: "auto" });
    this.note = h("p", { class: "quiet", id: "sheet-note" });
    this.star = h("button", { type: "button", class: "round", "aria-pressed": "false", "aria-label": t("favourite"), onclick: () => app.toggleFavourite(this.device) }, icon("star"));
    const move = (name, sign, by) => h("button", { type: "button", class: "round", "aria-label": t(name), onclick: () => app.page.move(this.device, by) }, icon(sign));
    this.body = h("div", { class: "rows" });
    this.history = new History(app.reports);
    this.log = new CommandLog(app);
    dialog.append(h("div", { class: "sheet-inner" },
      h("div", { class: "sheet-head" }, h("div", { class: "sheet-names" }, this.title, this.note),
        move("earlier", "left", -1), move("later", "right", 1), this.star,
        h("button", { type: "button", class: "round", autofocus: true, "aria-label": t("close"), onclick: () => dialog.close() }, icon("close"))),
      this.body, this.history.node, this.log.node));
    dialog.addEventListener("close", () => this.closed());
    // Once a finger is on it, it grows downwards only.
    dialog.addEventListener("pointerdown", () => this.stay(dialog.offsetTop));
    addEventListener("resize", () => this.stay(null));
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }

  open(device) {
    if (this.device === device) return;
    this.forget();
    this.device = device;
    this.plan = planOf(device);
    say(this.title, device.name);
    for (const key of device.keys) {
      this.app.house.follow(key);
      this.rows.set(key, new PropertyView(key, this.app));
    }
    this.body.replaceChildren(...[...this.rows.values()].map((row) => row.node));
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
    const now = performance.now();
    for (const row of this.rows.values()) row.update(now);
    this.update(now);
    this.showLog(this.plan.main ?? device.keys[0]);
  }

  /** Shows the history and the commands of a key below the rows. */
  showLog(key) {
    for (const row of this.rows.values()) set(row.labelButton, "aria-pressed", String(row.key === key));
    this.log.node.hidden = !key || key.isReadOnly;
    if (key) this.log.show(key, labelOf(key));
    this.history.show(key);
  }

  /** Shows a property first. */
  point(key) {
    this.showLog(key);
    this.rows.get(key)?.node.scrollIntoView({ block: "nearest" });
  }

  update(now) {
    const { device } = this;
    if (!device) return;
    set(this.dialog, "data-offline", device.online ? null : "");
    const parts = [device.area, device.isGroup ? t("members", device.members.length) : null, device.online ? null : t("offlineNote"), isUnheard(device) ? t("unheardNote", silentTopics(device)) : null];
    say(this.note, parts.filter((part) => part).join(" · "));
    if (this.plan.kind === "light") this.dialog.style.setProperty("--light", lightOf(this.plan));
    set(this.rows.get(this.plan.brightness)?.node ?? this.body, "data-lit", "");
    set(this.star, "aria-pressed", String(this.app.places.has("favourites", device)));
    if (this.log.key) this.log.update(now);
    this.history.update();
  }

  /** Keeps the upper edge where it is; `null` lets it go. */
  stay(top) {
    const { style } = this.dialog;
    style.marginTop = top === null ? "" : `${top}px`;
    style.maxHeight = top === null ? "" : `calc(100dvh - ${top}px)`;
  }

  forget() {
    this.stay(null);
    for (const row of this.rows.values()) {
      this.app.rings.views.delete(row);
      if (row.key.held) this.app.hold(row.key, false);
    }
    this.rows.clear();
    this.history.forget();
    this.device = null;
  }

  closed() {
    const device = this.device;
    this.forget();
    this.body.replaceChildren();
    if (device) this.app.sheetClosed(device);
  }
}

/** Whether nothing was heard of a device that reports. */
/** Where a device that was not heard should report: two topics at most. */
function silentTopics(device) { return [...new Set(device.keys.filter((key) => !key.isHeard && key.topic).map((key) => key.topic))].slice(0, 2).join(", "); }

function isUnheard(device) { return device.keys.some((key) => !key.isHeard) && device.keys.every((key) => !key.isHeard || key.actual === null); }

// A row of a device's sheet: one property with its fine control, and its recent changes falling below it.

/** Quiet periods below this, in milliseconds, are over before a finger reaches a button. */
const SHORT = 400;

let numbers = 0;

class PropertyView {
  constructor(key, app) {
    this.key = key;
    this.app = app;
    this.name = key.name ?? readable(key.id);
    this.label = labelOf(key);
    numbers += 1;
    this.status = h("span", { class: "status", id: `status-${numbers}` });
    this.trouble = null;
    this.control = key.isReadOnly ? reading(key) : controlFor(key, this.label, app);
    this.mark = this.control.mark ?? new Mark();
    [this.cancel, this.flush] = [["cancel", "close"], ["flush", "send"]].map(([order, sign]) =>
      h("button", { type: "button", class: "round", "aria-label": `${this.label}: ${t(order === "flush" ? "sendNow" : order)}`, onclick: () => app.order(order, key) }, icon(sign)));
    this.orders = h("span", { class: "orders", hidden: true }, this.cancel, this.flush);
    this.labelButton = h("button", { type: "button", class: "label", "aria-label": `${this.label}: ${t("timeline")}`, "aria-pressed": "false", onclick: () => app.sheet.showLog(key) },
      h("span", { class: "name", title: this.name, dir: "auto" }, this.name), this.status);
    this.fall = key.range && !key.isReadOnly ? new Fall(key) : null;
    this.node = h("div", { class: "property", "data-key": key.key, "data-type": key.type },
      h("div", { class: "head" }, this.labelButton, this.orders, ...(this.control.mark ? [] : [this.mark.node]),
        ...(this.control.aside ? [this.control.aside] : [])),
      ...(this.control.body ? [this.control.body] : []), ...(this.fall ? [this.fall.node] : []));
    for (const input of this.node.querySelectorAll("input, select, [role=switch], [role=group]")) {
      input.setAttribute("aria-describedby", this.status.id);
    }
  }

  /** Updates the row to the key's progress. */
  update(now) {
    const progress = this.key.progress(now);
    set(this.node, "data-progress", progress.name);
    this.mark.show(progress);
    set(this.mark.node, "data-old", this.key.isFresh(now) || !OVER.has(progress.name) ? null : "");
    this.app.rings.follow(this, progress);
    this.control.update();
    vanish(this.flush, !this.key.canFlush(now), () => this.focus());
    vanish(this.orders, !this.key.isOpen(now) || progress.name === "unsent" || this.key.span < SHORT, () => this.focus());
    say(this.status, progress.name === "failed" ? "" : statusText(this.key, progress, now));
    this.showTrouble(progress);
    this.fall?.wake(now);
  }

  showTrouble(progress) {
    if (progress.name !== "failed") {
      if (this.trouble) vanish(this.trouble, true, () => this.focus());
      this.trouble?.remove();
      this.trouble = null;
      return;
    }
    if (!this.trouble) {
      [this.troubleText, this.advice] = [h("p", {}), h("p", { class: "advice" })];
      this.trouble = h("div", { class: "trouble" }, h("div", {}, this.troubleText, this.advice));
      this.node.append(this.trouble);
      this.retry = null;
    }
    say(this.troubleText, failureText(progress));
    say(this.advice, adviceFor(this.key, progress));
    hide(this.advice, this.advice.textContent === "");
    this.failedValue = progress.value;
    if (progress.value === undefined || progress.value === null || this.retry) return;
    this.retry = h("button", { type: "button", class: "button retry", "aria-label": `${this.label}: ${t("retry")}`, onclick: () => this.again() }, icon("retry"), h("span", {}, t("retry")));
    this.trouble.append(this.retry);
  }

  again() { this.app.retry(this.key, this.failedValue); }

  /** Moves the focus to the control. */
  focus() {
    const nodes = [...this.node.querySelectorAll("input, select, [role=switch], .button, .label")];
    nodes.find((node) => node.offsetParent && !this.trouble?.contains(node))?.focus({ preventScroll: true });
  }

  overdue(by) { this.app.overdue(this.key, by); }
}

/** A property that only its device changes. */
function reading(key) {
  const figure = h("span", { class: "figure" });
  return { aside: h("span", { class: "reading" }, figure), body: null, update: () => say(figure, spoken(key, key.shown)) };
}

// The recent changes of a key, falling from its slider: a small dot for each change, and a large one on a
// line for each command that was sent. Across is the value, at the place of the thumb; down is the time.

/** How long, in milliseconds, an event is on the canvas at least. */
const SPAN = 10_000;

class Fall {
  constructor(key) {
    this.key = key;
    this.span = Math.max(SPAN, key.delay * 6);
    this.canvas = h("canvas", { class: "fall-plot", role: "img" });
    this.node = h("div", { class: "fall", hidden: true }, this.canvas);
    this.isMoving = false;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
  }

  /**
   * Draws, and goes on while anything falls. What this page changes falls; the room for it then stays, so that nothing moves
   * under a finger.
   */
  wake(now) {
    const { key } = this;
    if (this.node.hidden && key.isOwn && key.history.some((event) => now - event.at < this.span)) this.node.hidden = false;
    if (!this.isMoving && !this.node.hidden) this.turn(now);
  }

  turn(now = performance.now()) {
    this.isMoving = this.canvas.isConnected && this.key.history.some((event) => now - event.at < this.span);
    this.draw(now);
    if (!this.isMoving) return;
    if (this.still.matches) setTimeout(() => this.turn(), 250);
    else requestAnimationFrame(() => this.turn());
  }

  draw(now) {
    const { canvas, key } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (width === 0) return;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const style = getComputedStyle(canvas);
    const [ink, muted, accent, bad] = [style.color, style.caretColor, style.outlineColor, style.columnRuleColor];
    const size = parseFloat(style.fontSize);
    pen.font = `${size}px ${style.fontFamily}`;
    const thumb = parseFloat(style.getPropertyValue("--thumb-pixels")) || 36;
    const x = (value) => thumb / 2 + 4 + shareOf(key, value) * (width - thumb - 8);
    const y = (at) => ((now - at) / this.span) * height;
    const events = key.history.filter((event) => now - event.at < this.span && typeof event.value === "number");

    pen.fillStyle = muted;
    pen.textAlign = "right";
    pen.textBaseline = "bottom";
    pen.globalAlpha = 0.8;
    for (const part of events.length > 0 ? [0.5, 1] : []) pen.fillText(`−${t("s", typed((this.span * part) / 1000, 0))}`, width - 2, height * part - 1);
    const asked = events.filter((event) => event.phase === "accepted");
    pen.fillStyle = muted;
    for (const event of asked) {
      pen.globalAlpha = Math.max(0.15, 1 - (now - event.at) / this.span);
      disc(pen, x(event.value), y(event.at) + 2, 2.5);
    }
    const sent = events.filter((event) => (event.phase === "sending" || event.phase === "unchanged") && event.attempt === 1);
    for (const event of sent) {
      const end = this.endOf(event);
      const isBad = end === "failed" || end === "expired";
      const [px, py] = [x(event.value), y(event.at) + 6];
      pen.globalAlpha = Math.max(0.25, 1 - (now - event.at) / this.span);
      pen.fillStyle = isBad ? bad : event.phase === "unchanged" ? muted : accent;
      disc(pen, px, py, 6);
      pen.strokeStyle = style.backgroundColor;
      pen.lineWidth = 1.6;
      if (end === "confirmed") tick(pen, px, py);
      pen.fillStyle = ink;
      const isLeft = px > width * 0.6;
      pen.textAlign = isLeft ? "right" : "left";
      pen.textBaseline = "middle";
      const text = `${textOf(key, event.value)} · ${event.collapsed + 1} → ${event.phase === "unchanged" ? 0 : 1}`;
      const from = px + (isLeft ? -11 : 11);
      // A halo keeps it legible above dots.
      pen.lineWidth = 4;
      pen.lineJoin = "round";
      pen.strokeText(text, from, py);
      pen.fillText(text, from, py);
    }
    pen.globalAlpha = 1;
    set(canvas, "aria-label", t("summary", Math.round(this.span / 1000), changes(asked.length), commands(sent.length)));
  }

  endOf(command) {
    return this.key.history.findLast((event) => event.id === command.id && ENDS.has(event.phase))?.phase ?? null;
  }
}

function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

function tick(pen, x, y) {
  pen.beginPath();
  pen.moveTo(x - 2.6, y);
  pen.lineTo(x - 0.6, y + 2);
  pen.lineTo(x + 2.8, y - 2.2);
  pen.stroke();
}

// What a device reported of a property over the last hours, with axes: across is the time, up is the value.

const HOUR = 3_600_000;
/** The shortest and the longest time that is shown. */
const SHORTEST = 10 * 60_000;
const LONGEST = 24 * HOUR;
/** The distances of times on the axis. */
const TIMES = [2, 5, 10, 15, 30, 60, 120, 180, 360].map((minutes) => minutes * 60_000);
const HEIGHT = 132;
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 8, 8, 22];
/** How often the picture moves on, in milliseconds. */
const EVERY = 15_000;

class History {
  constructor(reports) {
    this.reports = reports;
    this.key = null;
    /** The newest point of the picture. */
    this.drawn = null;
    this.timer = 0;
    this.title = h("figcaption", { class: "history-title" });
    this.plot = svg("svg", { class: "history-plot", role: "img" });
    this.node = h("figure", { class: "history", hidden: true }, this.title, this.plot);
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  /** Shows a property's history; nothing where there is none. */
  async show(key) {
    this.forget();
    if (!key || !hasHistory(key)) return;
    this.key = key;
    await this.reports.read([key]);
    if (this.key !== key) return;
    this.node.hidden = this.reports.of(key).length === 0;
    this.draw();
    this.timer = setInterval(() => this.draw(), EVERY);
  }

  forget() {
    clearInterval(this.timer);
    this.key = null;
    this.drawn = null;
    this.node.hidden = true;
  }

  /** Draws what the device has reported meanwhile. */
  update() {
    if (!this.node.hidden && this.drawn !== this.reports.of(this.key).at(-1)) this.draw();
  }

  draw() {
    const { key, plot } = this;
    const width = plot.clientWidth;
    if (this.node.hidden || width === 0) return;
    const points = this.reports.of(key);
    this.drawn = points.at(-1);
    const now = performance.now();
    const span = Math.min(LONGEST, Math.max(SHORTEST, now - points[0].at));
    const from = now - span;
    const shown = since(points, from);
    const scale = scaleOf(key, shown);
    const x = (at) => LEFT + ((Math.max(at, from) - from) / span) * (width - LEFT - RIGHT);
    const y = (value) => TOP + (1 - (value - scale.low) / (scale.high - scale.low)) * (HEIGHT - TOP - BOTTOM);
    const text = (name, px, py, content) => {
      const node = svg("text", { class: name, x: px.toFixed(1), y: py.toFixed(1) });
      node.textContent = content;
      return node;
    };
    const grid = scale.ticks.flatMap((value) => [
      svg("path", { class: "history-grid", d: `M${LEFT} ${y(value).toFixed(1)}H${width - RIGHT}` }),
      // A word is above its line, where it has room.
      ...(key.type === "boolean" ? [text("history-value history-word", 0, y(value) - 10, scale.label(value))] : [text("history-value", LEFT - 8, y(value), scale.label(value))]),
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
    const [least, most] = extremes(shown).map((number) => (key.type === "boolean" ? textOf(key, number > 0) : withUnit(key, number)));
    const title = t("history", key.name ?? readable(key.id));
    say(this.title, least === most || key.type === "boolean" ? title : `${title} · ${least} – ${most}`);
    set(this.plot, "aria-label", t("historySpoken", least, most, spoken(key, key.actual)));
  }
}

/** The range of the axis, its ticks, and their texts. */
function scaleOf(key, points) {
  if (key.type === "boolean") return { low: -0.15, high: 1.15, ticks: [0, 1], label: (value) => textOf(key, value > 0) };
  const [least, most] = extremes(points);
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
  const format = new Intl.DateTimeFormat(locale, { hour: "numeric", minute: "2-digit" });
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

// The newest commands of a key as a list, with how each ended, and what can be done with the one that waits.

const LISTED = 8;

class CommandLog {
  constructor(app) {
    this.app = app;
    this.key = null;
    this.title = h("h3", { class: "log-title" });
    this.policy = h("p", { class: "quiet" });
    this.flush = h("button", { type: "button", class: "button primary", onclick: () => app.order("flush", this.key) }, t("sendNow"));
    this.cancel = h("button", { type: "button", class: "button", onclick: () => app.order("cancel", this.key) }, t("cancel"));
    this.list = h("ol", { class: "log", "aria-label": t("commandsList") });
    this.node = h("div", { class: "log-part" }, this.title, this.policy, h("div", { class: "sheet-buttons" }, this.flush, this.cancel), this.list);
  }

  show(key, label) {
    this.key = key;
    say(this.title, label);
    const most = key.maxWait === null ? "" : t("atMost", duration(key.maxWait));
    const apart = key.minInterval === 0 ? "" : t("apart", duration(key.minInterval));
    say(this.policy, key.delay === 0 ? t("immediately", apart) : t("whenQuiet", duration(key.delay), most, apart));
    this.shown = "";
    this.update(performance.now());
  }

  update(now) {
    const { key } = this;
    const isOpen = key.isOpen(now);
    const hadFocus = this.node.contains(document.activeElement);
    set(this.cancel, "disabled", isOpen ? null : "");
    set(this.flush, "disabled", isOpen && key.canFlush(now) ? null : "");
    // A button that is disabled has lost the focus.
    if (hadFocus && document.activeElement.disabled !== false) this.app.focus(key);
    const sent = key.history.filter((event) => (event.phase === "sending" && event.attempt === 1) || event.phase === "unchanged").slice(-LISTED).reverse();
    const lines = sent.map((command) => {
      const later = key.history.filter((event) => event.id === command.id);
      const end = later.findLast((event) => ENDS.has(event.phase))?.phase ?? null;
      const reason = later.findLast((event) => event.reason)?.reason ?? null;
      return { command, end, reason };
    });
    const shown = lines.map(({ command, end, reason }) => `${command.id}${end}${reason}`).join() || "none";
    if (shown === this.shown) return;
    this.shown = shown;
    this.list.replaceChildren(...lines.map(({ command, end, reason }) => this.line(command, end, reason)));
    if (lines.length === 0) this.list.append(h("li", { class: "quiet" }, t("noCommand")));
  }

  line(command, end, reason) {
    const isBad = end === "failed" || end === "expired";
    const time = new Date(performance.timeOrigin + command.at).toLocaleTimeString(locale);
    return h("li", { class: isBad ? "bad" : null },
      h("span", { class: "log-time" }, time), h("span", { class: "log-value", dir: "auto" }, spoken(this.key, command.value)),
      h("span", { class: "log-tally" }, `${changes(command.collapsed + 1)} → ${commands(command.phase === "unchanged" ? 0 : 1)}`),
      h("span", { class: "log-end" }, t(end ?? (this.key.canConfirm ? "underWay" : "sent")) + (reason ? `: ${reason}` : "")));
  }
}

// The value that waits after the finger was lifted, with "Send now" and "Cancel", at the end of the page.

/** Quiet periods below this, in milliseconds, are over before a finger gets there. */
const LONG = 1000;

export class PendingBar {
  constructor(node, app) {
    this.node = node;
    this.key = null;
    this.text = h("span", { class: "pending-text", dir: "auto" });
    const order = (name, word, style) => h("button", { type: "button", class: `button ${style}`, onclick: () => app.order(name, this.key) }, t(word));
    this.app = app;
    this.flush = order("flush", "sendNow", "primary");
    this.cancel = order("cancel", "cancel", "");
    this.back = h("button", { type: "button", class: "button", onclick: () => app.set(this.key, this.key.before) });
    node.append(this.text, this.cancel, this.flush, this.back);
  }

  /** Follows the key that was changed last on this page. */
  follow(key) { this.key = key; }

  update(now) {
    const { key } = this;
    if (!key) return;
    const { name } = key.progress(now);
    const isOpen = key.isOwn && !key.held && (name === "waiting" || (name === "settling" && key.span >= LONG));
    // What has left is taken back by another change.
    const isBack = !isOpen && key.canGoBack(now);
    const isShown = isOpen || isBack;
    const refocus = () => this.app.focus(key);
    vanish(this.node, !isShown, refocus);
    vanish(this.flush, !key.canFlush(now), refocus);
    vanish(this.cancel, !isOpen, refocus);
    vanish(this.back, !isBack, refocus);
    if (isBack) say(this.back, t("backTo", spoken(key, key.before)));
    if (isBack) this.app.drawLater(key, key.lastChange + FADE - now + 20);
    if (isShown) say(this.text, `${labelOf(key)}: ${spoken(key, key.pending?.value ?? key.shown)}`);
  }
}
