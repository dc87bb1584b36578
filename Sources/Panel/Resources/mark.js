// Settle
// SPDX-License-Identifier: Apache-2.0

// The ring around a thumb or a figure: it empties while the key settles, and becomes a tick.

import { svg } from "./dom.js";
import { changes, commands, duration, spoken } from "./values.js";
import { t } from "./words.js";

/** The text of each state; those that are not here have none. */
const WORDS = {
  settling: "settling", waiting: "waiting", unsent: "unsent", sending: "sending", sent: "sent", confirmed: "confirmed",
  done: "sent", unchanged: "unchanged", failed: "failed", cancelled: "cancelled",
};

const template = svg(
  "svg", { class: "mark", viewBox: "0 0 24 24", role: "img" },
  svg("circle", { class: "mark-track", cx: 12, cy: 12, r: 9 }),
  svg("path", { class: "mark-ring", d: "M12 3a9 9 0 0 0 0 18a9 9 0 0 0 0-18", pathLength: 100 }),
  svg("circle", { class: "mark-dot", cx: 12, cy: 12, r: 3.5 }),
  svg("path", { class: "mark-pause", d: "M9.5 8.5v7M14.5 8.5v7" }),
  svg("path", { class: "mark-tick", d: "m7.5 12.4 3.2 3.2 6-6.6", pathLength: 100 }),
  svg("path", { class: "mark-bang", d: "M12 6.5v6.5M12 16.7v.1" }),
);

export class Mark {
  constructor(drawing = template) {
    this.node = drawing.cloneNode(true);
    this.ring = this.node.children[1];
    this.name = null;
    this.left = null;
    this.show({ name: "idle" });
  }

  show(progress) {
    if (progress.name === this.name) return;
    // A confirmation from before the page was loaded is not animated.
    this.node.toggleAttribute("data-quiet", this.name === null || this.name === "idle");
    this.name = progress.name;
    this.node.dataset.progress = progress.name;
    const word = WORDS[progress.name];
    if (word) {
      this.node.setAttribute("aria-label", t(word));
      this.node.removeAttribute("aria-hidden");
    } else {
      this.node.removeAttribute("aria-label");
      this.node.setAttribute("aria-hidden", "true");
    }
  }

  /** Sets the remaining part of the ring, from 1 down to 0. */
  empty(left) {
    const text = left.toFixed(3);
    if (text === this.left) return;
    this.left = text;
    this.ring.style.strokeDashoffset = `${(1 - left) * 100}px`;
  }
}

const box = svg(
  "svg", { class: "mark mark-box", role: "img" },
  svg("rect", { class: "mark-track" }), svg("rect", { class: "mark-ring", pathLength: 100 }),
  svg("svg", { class: "mark-corner", viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("circle", { class: "mark-dot", cx: 12, cy: 12, r: 3.5 }), svg("path", { class: "mark-pause", d: "M9.5 8.5v7M14.5 8.5v7" }),
    svg("path", { class: "mark-tick", d: "m7.5 12.4 3.2 3.2 6-6.6", pathLength: 100 }), svg("path", { class: "mark-bang", d: "M12 6.5v6.5M12 16.7v.1" })),
);

/** A ring around a figure, in the shape of its box. */
export class BoxMark extends Mark {
  constructor() { super(box); }
}

/** Animates the rings of all settling keys; runs only while there are any. */
export class Rings {
  constructor(pace) {
    this.pace = pace;
    this.views = new Map();
    this.isMoving = false;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
  }

  /** Adds a view whose key settles, and removes any other. */
  follow(view, progress) {
    if (progress.name !== "settling") {
      this.views.delete(view);
      return;
    }
    this.views.set(view, progress);
    this.draw(view, progress, performance.now());
    if (!this.isMoving) this.schedule();
  }

  schedule() {
    this.isMoving = true;
    // With reduced motion, four steps a second suffice.
    if (this.still.matches) setTimeout(() => this.turn(), 250);
    else this.pace.plan(() => this.turn());
  }

  turn() {
    const now = performance.now();
    for (const [view, progress] of this.views) this.draw(view, progress, now);
    if (this.views.size === 0) this.isMoving = false;
    else this.schedule();
  }

  draw(view, progress, now) {
    const left = progress.span > 0 ? Math.min(1, Math.max(0, (progress.due - now) / progress.span)) : 0;
    view.mark.empty(left);
    if (now > progress.due) view.overdue(now - progress.due);
  }
}

// The progress of a key in words.

/** How much attention each state needs: a tile shows that of its neediest key. */
const NEED = { failed: 4, unsent: 3, waiting: 3, settling: 3, sending: 2, sent: 2 };

/** Progress that is shown for a while. */
export const OVER = new Set(["confirmed", "done", "unchanged", "cancelled", "superseded"]);

export function needOf(key, progress, now) {
  return NEED[progress.name] ?? (OVER.has(progress.name) && key.isFresh(now) ? 1 : 0);
}

export function statusText(key, progress, now) {
  const isFresh = key.isFresh(now);
  const tally = isFresh && key.tally && (key.tally.changes > 1 || key.tally.commands === 0)
    ? `${changes(key.tally.changes)} → ${commands(key.tally.commands)}` : null;
  const elsewhere = key.elsewhere === null ? null : t("now", spoken(key, key.elsewhere));
  switch (progress.name) {
    case "settling": return key.acceptedCount > 1 ? t("settlingMany", changes(key.acceptedCount)) : t("settling");
    case "waiting": return waitText(key, progress, now);
    case "unsent": return t("unsent");
    case "failed": return failureText(progress);
    case "sending":
    case "sent": return elsewhere ?? tally ?? t("sent");
    case "confirmed":
    case "done": return tally ?? elsewhere ?? "";
    case "unchanged": return tally ?? "";
    case "superseded": return progress.reason === "changed at the device" ? t("atDevice") : elsewhere ?? "";
    case "cancelled":
      if (!isFresh) return elsewhere ?? "";
      return progress.reason && progress.reason !== "urgent" ? t("cancelledBy", progress.reason) : t("cancelled");
    default: return elsewhere ?? "";
  }
}

export function failureText(progress) { return t(progress.isExpired ? "expiredBy" : "failedBy", progress.reason); }

/** What can be done about a failure; empty where its reason says it. */
export function adviceFor(key, { reason, isExpired }) {
  if (/cannot be read/.test(reason)) return t("adviseUnreadable");
  if (!key.isHeard) return key.topic ? t("adviseTopic", key.topic) : t("adviseUnheard");
  if (isExpired) return t("adviseExpired");
  return /not confirmed/.test(reason) ? t("adviseDevice") : "";
}

function waitText(key, progress, now) {
  const left = progress.due === null ? null : duration(Math.ceil(Math.max(0, progress.due - now) / 1000) * 1000);
  switch (progress.waits) {
    case "offline":
    case "unknown": return left === null ? t("held") : t("heldFor", left);
    case "asleep": return left === null ? t("asleep") : t("asleepFor", left);
    case "in_flight": return t("inFlight");
    case "lane": return key.type === "action" && key.acceptedCount > 1 ? t("turns", key.acceptedCount) : t("turn");
    default: return t("settling");
  }
}
