// Settle
// SPDX-License-Identifier: Apache-2.0

// The recent changes of a key, falling from its slider: a small dot for each change, and a large one on a
// line for each command that was sent. Across is the value, at the place of the thumb; down is the time.

import { h, set } from "./dom.js";
import { ENDS } from "./key.js";
import { shareOf } from "./thick.js";
import { changes, commands, textOf, typed } from "./values.js";
import { t } from "./words.js";

/** How long, in milliseconds, an event is on the canvas at least. */
const SPAN = 10_000;

export class Fall {
  constructor(key) {
    this.key = key;
    this.span = Math.max(SPAN, key.delay * 6);
    this.canvas = h("canvas", { class: "fall-plot", role: "img" });
    this.node = h("div", { class: "fall" }, this.canvas);
    this.isMoving = false;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
  }

  /** Draws, and goes on while anything falls. */
  wake(now) {
    if (!this.isMoving) this.turn(now);
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
