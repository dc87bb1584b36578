// Settle
// SPDX-License-Identifier: Apache-2.0

// A row of a device's sheet: one property with its fine control, and its recent changes falling below it.

import { controlFor } from "./controls.js";
import { h, icon, say, set, vanish } from "./dom.js";
import { Fall } from "./fall.js";
import { labelOf } from "./key.js";
import { Mark } from "./mark.js";
import { failureText, OVER, statusText } from "./progress.js";
import { readable, spoken } from "./values.js";
import { t } from "./words.js";

/** Quiet periods below this, in milliseconds, are over before a finger reaches a button. */
const SHORT = 400;

let numbers = 0;

export class PropertyView {
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
      this.troubleText = h("p", {});
      this.trouble = h("div", { class: "trouble" }, this.troubleText);
      this.node.append(this.trouble);
      this.retry = null;
    }
    say(this.troubleText, failureText(progress));
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
