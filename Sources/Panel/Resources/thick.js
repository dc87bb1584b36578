// Settle
// SPDX-License-Identifier: Apache-2.0

// The thick slider: a filled bar with the value inside, and the ring around its thumb.

import { h, hide, say, set } from "./dom.js";
import { Mark } from "./mark.js";
import { bindPointer } from "./pointer.js";
import { short, snapped, spoken, stepOf } from "./values.js";

/** The share of its range, from 0 to 1, at which a value is. */
export function shareOf(key, value) {
  const [low, high] = key.range;
  return high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0;
}

export class ThickSlider {
  constructor(key, label, app) {
    this.key = key;
    this.mark = new Mark();
    this.range = h("input", {
      class: "range", type: "range", min: key.range[0], max: key.range[1], step: stepOf(key), "aria-label": label,
    });
    // The value is there twice, in the color of either ground; one is hidden by the bar or by the side.
    this.base = h("span", { class: "thick-value" });
    this.lit = h("span", { class: "thick-value" });
    this.actual = h("span", { class: "actual" });
    this.bar = h("div", { class: "thick-lit", "aria-hidden": "true" }, this.lit);
    this.thumb = h("div", { class: "thick-thumb" }, this.mark.node);
    this.node = h("div", { class: "thick", "data-side": "right" },
      h("div", { class: "thick-base", "aria-hidden": "true" }, this.base), this.bar, this.actual, this.thumb, this.range);
    if (key.unit === "mired" || key.unit === "K") this.node.dataset.tint = key.unit;
    const put = () => {
      app.set(key, snapped(key, this.range.valueAsNumber));
    };
    bindPointer(this.range, key, app, put, () => this.follow());
  }

  /** Shows what the finger points at, before it is a change. */
  follow() { this.draw(this.range.valueAsNumber); }

  update(isOff = false, offText = "") {
    const { key, range } = this;
    const value = key.shown;
    const isKnown = typeof value === "number";
    const place = isKnown ? value : key.range[0];
    if (range.valueAsNumber !== place) range.valueAsNumber = place;
    set(range, "aria-valuetext", spoken(key, value));
    set(range, "aria-invalid", key.refusal ? "true" : null);
    set(this.node, "data-off", isOff ? "" : null);
    set(this.node, "data-unknown", isKnown ? null : "");
    // What is off has no level, until a finger chooses one.
    const isEmpty = !isKnown || (isOff && !key.held);
    this.draw(isEmpty ? null : value, isOff ? offText : null);
    const elsewhere = key.elsewhere;
    const isHere = typeof elsewhere !== "number" || isOff;
    hide(this.actual, isHere);
    if (!isHere) this.actual.style.setProperty("--actual", shareOf(key, elsewhere).toFixed(4));
  }

  draw(value, text = null) {
    const share = value === null ? 0 : shareOf(this.key, value);
    const shown = text ?? short(this.key, value);
    if (this.share !== share) {
      this.share = share;
      for (const part of [this.bar, this.thumb]) part.style.setProperty("--fill", share.toFixed(4));
    }
    // With some slack, so that the text does not flicker from side to side.
    const side = this.node.dataset.side === "left" ? (share < 0.45 ? "right" : "left") : share > 0.55 ? "left" : "right";
    set(this.node, "data-side", side);
    for (const node of [this.base, this.lit]) say(node, shown);
  }
}
