// Settle
// SPDX-License-Identifier: Apache-2.0

// One key over time: all changes and the commands that were sent.

import { h, icon, say, set } from "./dom.js";
import { changes, commands, duration, spoken, textOf } from "./values.js";
import { t } from "./words.js";

const LISTED = 8;
const ENDS = new Set(["confirmed", "failed", "expired", "superseded", "unchanged", "cancelled"]);

export class Timeline {
  constructor(dialog, app) {
    this.dialog = dialog;
    this.app = app;
    this.key = null;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.title = h("h2", { id: "timeline-title" });
    this.policy = h("p", { class: "quiet" });
    this.canvas = h("canvas", { class: "plot", role: "img" });
    this.legend = h("p", { class: "legend" },
      h("span", { class: "legend-change" }, t("changesNoun")), h("span", { class: "legend-command" }, t("commandsNoun")),
      h("span", { class: "legend-quiet" }, t("quietPeriod")));
    this.list = h("ol", { class: "log", "aria-label": t("commandsList") });
    this.flush = h("button", { type: "button", class: "button primary", onclick: () => app.order("flush", this.key) }, t("sendNow"));
    this.cancel = h("button", { type: "button", class: "button", onclick: () => app.order("cancel", this.key) }, t("cancel"));
    this.close = h("button", { type: "button", class: "round", "aria-label": t("close"), onclick: () => dialog.close() }, icon("close"));
    dialog.append(h("div", { class: "sheet-inner" },
      h("div", { class: "sheet-head" }, h("div", {}, this.title, this.policy), this.close),
      this.canvas, this.legend, h("div", { class: "sheet-buttons" }, this.flush, this.cancel), this.list));
    dialog.addEventListener("close", () => { this.key = null; });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }

  open(key, label) {
    this.key = key;
    this.app.house.follow(key);
    say(this.title, label);
    const most = key.maxWait === null ? "" : t("atMost", duration(key.maxWait));
    const apart = key.minInterval === 0 ? "" : t("apart", duration(key.minInterval));
    say(this.policy, key.delay === 0 ? t("immediately", apart) : t("whenQuiet", duration(key.delay), most, apart));
    this.shownList = "";
    this.span = Math.max(12_000, key.delay * 10);
    this.low = undefined;
    this.dialog.showModal();
    this.turn();
  }

  turn() {
    if (!this.key) return;
    const now = performance.now();
    this.draw(now);
    this.showList();
    const isOpen = this.key.isOpen(now);
    for (const button of [this.flush, this.cancel]) set(button, "disabled", isOpen ? null : "");
    if (this.still.matches) setTimeout(() => this.turn(), 250);
    else requestAnimationFrame(() => this.turn());
  }

  // Drawing

  draw(now) {
    const { canvas, key } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const style = getComputedStyle(canvas);
    const color = (name) => style.getPropertyValue(name).trim();
    const size = parseFloat(style.fontSize);
    pen.font = `${size}px ${style.fontFamily}`;
    const frame = { left: 0.5, right: width - size * 1.2, top: size * 2.2, bottom: height - size * 2 };
    const x = (at) => frame.right - ((now - at) / this.span) * (frame.right - frame.left);
    const events = key.history.filter((event) => event.at > now - this.span * 1.1);
    const y = this.scale(events, frame, now);

    // Time
    pen.strokeStyle = color("--line");
    pen.fillStyle = color("--muted");
    pen.lineWidth = 1;
    pen.textBaseline = "top";
    const pace = this.span <= 15_000 ? 2000 : Math.ceil(this.span / 6000) * 1000;
    for (let back = 0; back < this.span; back += pace) {
      const at = Math.round(x(now - back)) + 0.5;
      pen.beginPath();
      pen.moveTo(at, frame.top - size);
      pen.lineTo(at, frame.bottom);
      pen.stroke();
      pen.textAlign = back === 0 ? "right" : "center";
      pen.fillText(back === 0 ? "now" : `−${back / 1000} s`, back === 0 ? width - 1 : at, frame.bottom + size * 0.6);
    }

    // Changes, and the quiet period after the last one of each command
    const asked = events.filter((event) => event.phase === "accepted");
    const sent = events.filter((event) => (event.phase === "sending" || event.phase === "unchanged") && event.attempt === 1);
    pen.fillStyle = color("--quiet");
    for (const command of [...sent, ...(key.isOpen(now) ? [{ at: now }] : [])]) {
      const last = asked.findLast((change) => change.at <= command.at);
      if (!last || command.at - last.at < 20) continue;
      pen.fillRect(x(last.at), frame.top - size, x(command.at) - x(last.at), frame.bottom - frame.top + size);
    }
    pen.strokeStyle = color("--change");
    pen.fillStyle = color("--change");
    pen.lineWidth = 1.5;
    pen.beginPath();
    asked.forEach((change, place) => {
      const [px, py] = [x(change.at), y(change.value)];
      if (place === 0) return pen.moveTo(px, py);
      // Each burst is a line of its own.
      if (change.at - asked[place - 1].at > Math.max(600, key.delay)) return pen.moveTo(px, py);
      pen.lineTo(px, y(asked[place - 1].value));
      pen.lineTo(px, py);
    });
    pen.globalAlpha = 0.45;
    pen.stroke();
    pen.globalAlpha = 1;
    for (const change of asked) disc(pen, x(change.at), y(change.value), 2.2);

    // Commands
    for (const command of sent) this.drawCommand(pen, command, { x, y, frame, color, size, now });
    set(canvas, "aria-label", this.summary(now));
  }

  drawCommand(pen, command, { x, y, frame, color, size }) {
    const px = x(command.at);
    const py = y(command.value);
    const end = this.endOf(command);
    const isBad = end === "failed" || end === "expired";
    const paint = color(isBad ? "--bad" : command.phase === "unchanged" ? "--muted" : "--accent");
    pen.strokeStyle = paint;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(px, frame.bottom);
    pen.lineTo(px, py);
    pen.stroke();
    pen.fillStyle = color("--surface");
    disc(pen, px, py, 7.5);
    pen.fillStyle = paint;
    disc(pen, px, py, 5.5);
    pen.strokeStyle = color("--surface");
    pen.lineWidth = 1.6;
    pen.lineCap = "round";
    pen.beginPath();
    if (isBad) {
      for (const side of [-1, 1]) {
        pen.moveTo(px - 2 * side, py - 2);
        pen.lineTo(px + 2 * side, py + 2);
      }
    } else if (end === "confirmed") {
      pen.moveTo(px - 2.5, py);
      pen.lineTo(px - 0.6, py + 2);
      pen.lineTo(px + 2.6, py - 2);
    }
    pen.stroke();
    pen.textBaseline = "bottom";
    pen.textAlign = px > frame.right - size * 2 ? "right" : px < size * 2 ? "left" : "center";
    pen.fillStyle = color("--ink");
    const text = `${textOf(this.key, command.value)} · ${command.collapsed + 1}→${command.phase === "unchanged" ? 0 : 1}`;
    const line = Math.max(size * 1.2, py - 11);
    pen.strokeStyle = color("--surface");
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    pen.strokeText(text, px, line);
    pen.fillText(text, px, line);
  }

  /** The vertical scale: linear for numbers, one line for each word. */
  scale(events, frame) {
    const { key } = this;
    const seen = [...events.map((event) => event.value), key.shown, key.actual].filter((value) => value !== null && value !== undefined);
    if (key.type === "number" || key.type === "integer") {
      const numbers = seen.filter((value) => typeof value === "number");
      let low = numbers.length ? Math.min(...numbers) : 0;
      let high = numbers.length ? Math.max(...numbers) : 1;
      const least = key.range ? (key.range[1] - key.range[0]) / 8 : 1;
      if (high - low < least) {
        const middle = (high + low) / 2;
        [low, high] = [middle - least / 2, middle + least / 2];
      }
      // The scale adapts slowly, so that the drawing does not jump.
      if (this.low !== undefined) {
        low = Math.min(low, this.low + (low - this.low) * 0.04);
        high = Math.max(high, this.high + (high - this.high) * 0.04);
      }
      [this.low, this.high] = [low, high];
      return (value) => typeof value === "number"
        ? frame.bottom - size(value, low, high) * (frame.bottom - frame.top - 8) - 4 : frame.bottom;
    }
    const words = key.type === "boolean" ? [false, true] : key.values ?? [...new Set(seen.map((value) => JSON.stringify(value)))];
    return (value) => {
      const place = words.indexOf(key.type === "boolean" || key.values ? value : JSON.stringify(value));
      return frame.bottom - ((Math.max(0, place) + 0.5) / Math.max(1, words.length)) * (frame.bottom - frame.top);
    };
  }

  endOf(command) {
    return this.key.history.findLast((event) => event.id === command.id && ENDS.has(event.phase))?.phase ?? null;
  }

  summary(now) {
    const recent = this.key.history.filter((event) => event.at > now - this.span);
    const asked = recent.filter((event) => event.phase === "accepted").length;
    const sent = recent.filter((event) => event.phase === "sending" && event.attempt === 1).length;
    return t("summary", Math.round(this.span / 1000), changes(asked), commands(sent));
  }

  // The commands as a list

  showList() {
    const { key } = this;
    const sent = key.history.filter((event) => (event.phase === "sending" && event.attempt === 1) || event.phase === "unchanged").slice(-LISTED).reverse();
    const lines = sent.map((command) => {
      const end = this.endOf(command);
      const reason = key.history.findLast((event) => event.id === command.id && event.reason)?.reason;
      return { command, end, reason, mark: `${command.id}${end}${reason}` };
    });
    const shown = lines.map((line) => line.mark).join() || "none";
    if (shown === this.shownList) return;
    this.shownList = shown;
    this.list.replaceChildren(...lines.map(({ command, end, reason }) => {
      const isBad = end === "failed" || end === "expired";
      const time = new Date(performance.timeOrigin + command.at).toLocaleTimeString([], { hour12: false });
      return h("li", { class: isBad ? "bad" : null },
        h("span", { class: "log-time" }, time), h("span", { class: "log-value" }, spoken(key, command.value)),
        h("span", { class: "log-tally" }, `${changes(command.collapsed + 1)} → ${commands(command.phase === "unchanged" ? 0 : 1)}`),
        h("span", { class: "log-end" }, t(end ?? (key.canConfirm ? "underWay" : "sent")) + (reason ? `: ${reason}` : "")));
    }));
    if (lines.length === 0) this.list.append(h("li", { class: "quiet" }, t("noCommand")));
  }
}

function size(value, low, high) { return high > low ? (value - low) / (high - low) : 0.5; }

function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}
