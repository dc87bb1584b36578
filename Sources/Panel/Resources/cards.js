// Settle
// SPDX-License-Identifier: Apache-2.0

// A card for each device, with a row for each property.

import { controlFor } from "./controls.js";
import { h, icon, say, set } from "./dom.js";
import { Mark } from "./mark.js";
import { changes, commands, duration, readable, spoken } from "./values.js";
import { t } from "./words.js";

/** Estimated heights in rem, to distribute cards over columns before they are laid out. */
const HEIGHTS = { number: 7.5, integer: 7.5, boolean: 4, choice: 7.25, color: 10, action: 7, text: 7 };

/** Quiet periods below this, in milliseconds, are over before a finger reaches a button. */
const SHORT = 400;
/** Progress that is shown for a while. */
const OVER = new Set(["confirmed", "done", "unchanged", "cancelled", "superseded"]);

let numbers = 0;

/** One property on the page. */
export class PropertyView {
  constructor(key, app) {
    this.key = key;
    this.app = app;
    this.mark = new Mark();
    this.name = key.name ?? readable(key.id);
    this.label = `${key.device.name}, ${this.name}`;
    numbers += 1;
    this.status = h("span", { class: "status", id: `status-${numbers}` });
    this.trouble = null;
    this.control = controlFor(key, this.label, app);
    this.orders = h("span", { class: "orders", hidden: true }, ...[["cancel", "close"], ["flush", "send"]].map(([order, sign]) =>
      h("button", { type: "button", class: "round", "aria-label": `${this.label}: ${t(order === "flush" ? "sendNow" : order)}`, onclick: () => app.order(order, key) }, icon(sign))));
    this.node = h("div", { class: "property", "data-key": key.key, "data-type": key.type },
      h("div", { class: "head" },
        h("button", { type: "button", class: "label", "aria-label": `${this.label}: ${t("timeline")}`, "aria-haspopup": "dialog", onclick: () => app.openTimeline(key) },
          h("span", { class: "name", title: this.name, dir: "auto" }, this.name), this.status),
        this.orders, this.mark.node, ...(this.control.aside ? [this.control.aside] : [])),
      ...(this.control.body ? [this.control.body] : []));
    for (const input of this.node.querySelectorAll("input, select, [role=switch], [role=group]")) {
      input.setAttribute("aria-describedby", this.status.id);
    }
    this.wasFailed = null;
    this.looked = 0;
  }

  /** Updates the row to the key's progress. */
  update(now) {
    const progress = this.key.progress(now);
    set(this.node, "data-progress", progress.name);
    this.mark.show(progress);
    this.app.rings.follow(this, progress);
    this.control.update();
    this.orders.hidden = !this.key.isOpen(now) || progress.name === "unsent" || this.key.span < SHORT;
    set(this.mark.node, "data-old", this.key.isFresh(now) || !OVER.has(progress.name) ? null : "");
    say(this.status, this.statusText(progress, now));
    this.showTrouble(progress);
    if (progress.name === "waiting") this.lookAgain(2000);
    return progress;
  }

  statusText(progress, now) {
    const { key } = this;
    const isFresh = key.isFresh(now);
    const tally = isFresh && key.tally && (key.tally.changes > 1 || key.tally.commands === 0)
      ? `${changes(key.tally.changes)} → ${commands(key.tally.commands)}` : null;
    const elsewhere = key.elsewhere === null ? null : t("now", spoken(key, key.elsewhere));
    switch (progress.name) {
      case "settling": return key.acceptedCount > 1 ? t("settlingMany", changes(key.acceptedCount)) : t("settling");
      case "waiting": return this.waitText(progress, now);
      case "unsent": return t("unsent");
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

  waitText(progress, now) {
    const left = progress.due === null ? null : duration(Math.ceil(Math.max(0, progress.due - now) / 1000) * 1000);
    switch (progress.waits) {
      case "offline": return left === null ? t("held") : t("heldFor", left);
      case "asleep": return left === null ? t("asleep") : t("asleepFor", left);
      case "in_flight": return t("inFlight");
      case "lane": return this.key.type === "action" && this.key.acceptedCount > 1 ? t("turns", this.key.acceptedCount) : t("turn");
      default: return t("settling");
    }
  }

  showTrouble(progress) {
    if (progress.name !== "failed") {
      if (this.trouble) {
        this.trouble.remove();
        this.trouble = null;
      }
      this.wasFailed = false;
      return;
    }
    const text = t(progress.isExpired ? "expiredBy" : "failedBy", progress.reason);
    if (!this.trouble) {
      this.troubleText = h("p", {});
      this.trouble = h("div", { class: "trouble" }, this.troubleText);
      this.node.append(this.trouble);
      this.retry = null;
    }
    say(this.troubleText, text);
    const canRetry = progress.value !== undefined && progress.value !== null;
    if (canRetry && !this.retry) {
      this.retry = h("button", { type: "button", class: "button retry", "aria-label": `${this.label}: ${t("retry")}`, onclick: () => this.again() }, icon("retry"), h("span", {}, t("retry")));
      this.trouble.append(this.retry);
    }
    this.failedValue = progress.value;
    // A failure from before the page was loaded is not announced.
    if (this.wasFailed === false) this.app.alert(`${this.label}: ${text}`);
    this.wasFailed = true;
  }

  again() {
    const value = this.failedValue;
    this.node.querySelector("input, select, [role=switch], .button")?.focus({ preventScroll: true });
    this.app.change(this.key, { set: value }, this.key.type === "action" ? undefined : value);
  }

  /** Reads the key again when its quiet period should have ended. */
  overdue(by) {
    if (by > 250) this.lookAgain(1000);
  }

  lookAgain(pause) {
    const now = performance.now();
    if (now - this.looked < pause) return;
    this.looked = now;
    setTimeout(() => this.app.refreshKey(this.key), pause === 1000 ? 0 : pause);
  }
}

/** One device on the page. */
export class CardView {
  constructor(device, app) {
    this.device = device;
    numbers += 1;
    const id = `device-${numbers}`;
    this.note = h("p", { class: "card-note", hidden: true });
    this.views = device.keys.map((key) => new PropertyView(key, app));
    this.node = h("section", { class: "card", "aria-labelledby": id, "data-device": device.id },
      h("div", { class: "card-head" }, h("h2", { id, dir: "auto" }, device.name), this.note),
      ...this.views.map((view) => view.node));
    this.height = 5 + device.keys.reduce((sum, key) => sum + (HEIGHTS[key.type] ?? 7), 0);
    this.node.style.containIntrinsicSize = `auto ${this.height}rem`;
    this.words = `${device.name}\n${device.id}\n${device.area ?? ""}`.toLowerCase();
  }

  update() {
    const isAway = !this.device.online;
    set(this.node, "data-offline", isAway ? "true" : null);
    this.note.hidden = !isAway;
    if (isAway) say(this.note, t("offlineNote"));
  }

  /** Filters the card by words, each of the device or of a property. Returns false if nothing matches. */
  filter(words) {
    const missing = words.filter((word) => !this.words.includes(word));
    let isAny = missing.length === 0;
    for (const view of this.views) {
      const own = `${view.name}\n${view.key.key}`.toLowerCase();
      const isFound = missing.every((word) => own.includes(word));
      view.node.hidden = !isFound;
      isAny ||= isFound;
    }
    return isAny;
  }
}
