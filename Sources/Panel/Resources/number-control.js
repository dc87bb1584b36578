// Settle
// SPDX-License-Identifier: Apache-2.0

// A number: a slider where it has a range, steps, and a field to type it.

import { h, icon, set } from "./dom.js";
import { bindPointer } from "./pointer.js";
import { firstValue, readNumber, same, snapped, spoken, stepOf, textOf } from "./values.js";
import { t } from "./words.js";

export function number(key, label, app) {
  const put = (value) => app.change(key, { set: value }, value);
  const stepBy = (count) => {
    const base = key.shown;
    if (typeof base !== "number") {
      // Each member of a group counts from its own value; a device has nothing to count from.
      return key.device.isGroup ? app.change(key, { step: count * stepOf(key) }, undefined) : put(firstValue(key, count));
    }
    const value = snapped(key, base + count * stepOf(key));
    if (!same(value, base)) put(value);
  };
  const field = h("input", {
    class: "figure", type: "text", inputmode: "decimal", role: "spinbutton", autocomplete: "off", "aria-label": `${label}, ${t("typeValue")}`,
    "aria-valuemin": key.range?.[0], "aria-valuemax": key.range?.[1], enterkeyhint: "send", size: widthOf(key),
    onfocus: () => field.select(),
    onkeydown: (event) => {
      const count = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (count) {
        event.preventDefault();
        isTyped = false;
        stepBy(count);
      } else if (event.key === "Enter") {
        commit();
        field.select();
      } else if (event.key === "Escape") {
        isTyped = false;
        update();
        field.blur();
      }
    },
    oninput: () => { isTyped = true; },
    onblur: () => {
      commit();
      update();
    },
  });
  let isTyped = false;
  const commit = () => {
    if (!isTyped) return;
    isTyped = false;
    const typed = field.value.trim();
    if (typed === "") return;
    // The gateway rejects text that is not a number, with a suggestion.
    const value = readNumber(typed) ?? typed;
    app.change(key, { set: value }, typeof value === "number" ? value : undefined);
  };
  const aside = h("span", { class: "reading" }, field);
  if (key.unit) aside.append(h("span", { class: "unit" }, key.unit));

  const slider = key.range && h("input", {
    class: "range", type: "range", min: key.range[0], max: key.range[1], step: stepOf(key), "aria-label": label,
  });
  if (slider) bindPointer(slider, key, app, () => put(snapped(key, slider.valueAsNumber)), () => update());
  const actual = h("span", { class: "actual", "aria-hidden": "true" });
  const body = h("div", { class: slider ? "sliding" : "stepping" });
  const track = slider && h("div", { class: "slider" }, slider, actual);
  if (track && (key.unit === "mired" || key.unit === "K")) track.dataset.tint = key.unit;
  body.append(stepper("minus", `${label}: ${t("less")}`, () => stepBy(-1), slider), ...(track ? [track] : []),
    stepper("plus", `${label}: ${t("more")}`, () => stepBy(1), slider));

  const share = (value) => {
    const [low, high] = key.range;
    return high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0;
  };
  const update = () => {
    const value = key.shown;
    if (!isTyped) {
      const shown = textOf(key, value);
      if (field.value !== shown) {
        field.value = shown;
        // What is typed next replaces it.
        if (document.activeElement === field) field.select();
      }
    }
    const isKnown = typeof value === "number";
    set(field, "aria-valuenow", isKnown ? value : null);
    set(field, "aria-valuetext", spoken(key, value));
    set(field, "aria-invalid", key.refusal ? "true" : null);
    if (!slider) return;
    const place = isKnown ? value : key.range[0];
    if (slider.valueAsNumber !== place) slider.valueAsNumber = place;
    set(slider, "aria-valuetext", spoken(key, value));
    track.style.setProperty("--fill", isKnown ? share(value) : 0);
    const elsewhere = key.elsewhere;
    actual.hidden = typeof elsewhere !== "number";
    if (!actual.hidden) track.style.setProperty("--actual", share(elsewhere));
  };
  return { aside, body, update };
}

function widthOf(key) {
  const ends = key.range ?? [0, 1000];
  return Math.max(2, ...ends.map((end) => textOf(key, snapped({ ...key, range: null }, end)).length));
}

/** A button that steps once, and repeats while it is held. */
function stepper(name, label, step, isExtra) {
  let timer = 0;
  let isRepeating = false;
  const end = () => {
    clearTimeout(timer);
    timer = 0;
  };
  const repeat = () => {
    isRepeating = true;
    step();
    timer = setTimeout(repeat, 90);
  };
  return h("button", {
    // Not in the tab order, because the slider's arrow keys do the same.
    type: "button", class: "round", "aria-label": label, tabindex: isExtra ? -1 : null,
    onpointerdown: (event) => {
      if (event.button !== 0) return;
      isRepeating = false;
      end();
      timer = setTimeout(repeat, 380);
    },
    onpointerup: end, onpointerleave: end, onpointercancel: end,
    onclick: () => {
      end();
      if (!isRepeating) step();
      isRepeating = false;
    },
    oncontextmenu: (event) => event.preventDefault(),
  }, icon(name));
}
