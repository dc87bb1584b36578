// Settle
// SPDX-License-Identifier: Apache-2.0

// A tile for each device. Only tiles near the visible part of the page have a body, and follow changes.

import { h, icon, say, set } from "./dom.js";
import { lightOf, planOf } from "./kinds.js";
import { Mark } from "./mark.js";
import { needOf, OVER, statusText } from "./progress.js";
import { labelOf } from "./rows.js";
import { bodyFor } from "./tile-bodies.js";
import { readable, spoken } from "./values.js";
import { t } from "./words.js";

let numbers = 0;

export class TileView {
  constructor(device, app) {
    this.device = device;
    this.app = app;
    this.plan = planOf(device);
    this.isNear = false;
    numbers += 1;
    this.state = h("span", { class: "tile-state", id: `tile-${numbers}` });
    this.name = h("button", { type: "button", class: "tile-name", "aria-label": device.name, "aria-haspopup": "dialog", "aria-describedby": this.state.id, onclick: () => app.open(device) },
      h("span", { class: "tile-title", dir: "auto" }, device.name), this.state);
    this.node = h("div", { class: "tile", role: "group", "data-device": device.id, "data-kind": this.plan.kind, "aria-label": device.name },
      h("div", { class: "tile-head" }, h("h3", { class: "tile-names" }, this.name)));
    this.node.tile = this;
    this.words = `${device.name}\n${device.id}\n${device.area ?? ""}`.toLowerCase();
    this.keyWords = device.keys.map((key) => `${key.name ?? readable(key.id)}\n${key.key}`.toLowerCase());
  }

  /** Builds the rest of the tile; it is kept when the tile leaves the page. */
  fill() {
    if (this.body) return;
    const { plan, app } = this;
    const head = this.node.firstElementChild;
    this.power = plan.power && (plan.kind === "light" || plan.kind === "number" || plan.kind === "climate") ? this.powerButton() : null;
    this.body = bodyFor(plan, app);
    this.sign = this.power ?? this.body.sign ?? h("span", { class: "tile-icon" }, icon(signOf(plan)));
    this.mark = new Mark();
    this.retry = h("button", { type: "button", class: "round tile-retry", hidden: true, onclick: () => this.again() }, icon("retry"));
    head.prepend(this.sign);
    head.append(this.mark.node, this.retry);
    if (this.body.node) this.node.append(this.body.node);
  }

  powerButton() {
    const key = this.plan.power;
    return h("button", {
      type: "button", class: "tile-power", role: "switch", "aria-label": labelOf(key),
      onclick: () => this.app.change(key, { set: key.shown !== true }, key.shown !== true),
    }, icon(signOf(this.plan)));
  }

  update(now) {
    if (!this.isNear) return;
    this.fill();
    const { plan, device } = this;
    set(this.node, "data-offline", device.online ? null : "");
    if (this.power) set(this.power, "aria-checked", plan.power.shown === true ? "true" : "false");
    if (this.power) set(this.power, "data-unknown", typeof plan.power.shown === "boolean" ? null : "");
    const isOff = plan.power?.shown === false;
    set(this.node, "data-on", isOn(plan) ? "" : null);
    if (plan.kind === "light") this.node.style.setProperty("--lamp", lightOf(plan));
    const leading = this.leading(now);
    this.body.update(now, isOff);
    this.follow(this.body.mark, plan.main, now);
    // The ring is at the thumb or figure of the main property, and at the head for the others.
    const isElsewhere = leading && (leading.key !== plan.main || !this.body.mark);
    const progress = isElsewhere ? leading.progress : { name: "idle" };
    this.mark.show(progress);
    set(this.mark.node, "data-old", isElsewhere && leading.need > 0 ? null : "");
    this.app.rings.follow(this, progress);
    this.failed = leading?.progress.name === "failed" ? leading : null;
    this.retry.hidden = !this.failed || this.failed.progress.value === undefined || this.failed.progress.value === null;
    if (!this.retry.hidden) set(this.retry, "aria-label", `${labelOf(this.failed.key)}: ${t("retry")}`);
    set(this.node, "data-progress", leading?.need ? leading.progress.name : "idle");
    say(this.state, this.stateText(leading, isOff, now));
    set(this.state, "title", this.failed ? this.state.textContent : null);
  }

  /** Shows the progress of the main property at its thumb or figure. */
  follow(mark, key, now) {
    if (!mark) return;
    const progress = key.progress(now);
    mark.show(progress);
    set(mark.node, "data-old", key.isFresh(now) || !OVER.has(progress.name) ? null : "");
    this.body.view ??= { key, mark, overdue: (by) => this.app.overdue(key, by) };
    this.app.rings.follow(this.body.view, progress);
  }

  /** The key that needs attention most. */
  leading(now) {
    let best = null;
    for (const key of this.device.keys) {
      const progress = key.progress(now);
      const need = needOf(key, progress, now);
      if (need > 0 && (best === null || need > best.need || (need === best.need && key === this.plan.main))) best = { key, progress, need };
    }
    return best;
  }

  stateText(leading, isOff, now) {
    if (!this.device.online && !(leading?.need > 2)) return t("offline");
    if (leading?.need > 0) {
      const text = statusText(leading.key, leading.progress, now);
      if (text) return text;
    }
    const parts = [this.body.text(isOff), ...this.plan.readings.filter((key) => key !== this.plan.actual || this.plan.kind !== "climate").slice(0, 2)
      .map((key) => (this.plan.kind === "reading" ? null : spoken(key, key.shown)))];
    return parts.filter((part) => part).join(" · ");
  }

  again() { this.app.retry(this.failed.key, this.failed.progress.value); }

  /** The page's part of the tile has left the view: its rings rest. */
  rest() {
    this.app.rings.views.delete(this);
    if (this.body?.view) this.app.rings.views.delete(this.body.view);
  }

  overdue(by) {
    const leading = this.leading(performance.now());
    if (leading) this.app.overdue(leading.key, by);
  }

  /** Whether each word is in the device's names or in those of one property. */
  matches(words) {
    return words.every((word) => this.words.includes(word)) || this.found(words) !== null;
  }

  /** The property whose names have the words that the device's have not; null if there is none. */
  found(words) {
    const missing = words.filter((word) => !this.words.includes(word));
    if (missing.length === 0) return null;
    return this.device.keys[this.keyWords.findIndex((own) => missing.every((word) => own.includes(word)))] ?? null;
  }
}

function isOn(plan) {
  if (plan.power) return plan.power.shown === true;
  return plan.kind === "light" && (typeof plan.main.shown !== "number" || plan.main.shown > 0);
}

function signOf(plan) {
  return { light: "bulb", cover: "blind", climate: "flame", switch: "plug", number: "dial", choice: "list", text: "text", action: "press" }[plan.kind] ?? "gauge";
}
