// Settle
// SPDX-License-Identifier: Apache-2.0

// A number: a slider where it has a range, steps, and a field to type it.

import { h, icon, set } from "./dom.js";
import { BoxMark } from "./mark.js";
import { ThickSlider } from "./thick.js";
import { firstValue, inward, outward, readNumber, same, snapped, spoken, stepOf, stepped, textOf, unitOf, unreadable } from "./values.js";
import { t } from "./words.js";

/** A function that moves a number by so many steps. */
export function stepper(key, app) {
  const put = (value) => app.set(key, value);
  return (count) => {
    const base = key.shown;
    if (typeof base !== "number") {
      // Each member of a group counts from its own value; a device has nothing to count from.
      return key.device.isGroup ? app.step(key, count * stepOf(key)) : put(firstValue(key, count));
    }
    const value = stepped(key, base, count);
    if (!same(value, base)) put(value);
  };
}

export function number(key, label, app) {
  const stepBy = stepper(key, app);
  const { field, update: updateField } = figureField(key, label, app, stepBy);
  const thick = key.range ? new ThickSlider(key, label, app) : null;
  const box = thick ? null : new BoxMark();
  const aside = h("span", { class: "reading boxed" }, ...(box ? [box.node] : []), field, ...(unitOf(key) ? [h("span", { class: "unit" }, unitOf(key))] : []));
  const body = h("div", { class: thick ? "sliding" : "stepping" },
    stepButton("minus", `${label}: ${t("less")}`, () => stepBy(-1), thick), ...(thick ? [thick.node] : []),
    stepButton("plus", `${label}: ${t("more")}`, () => stepBy(1), thick));
  const update = () => {
    updateField();
    thick?.update();
  };
  return { aside, body, update, mark: (thick ?? { mark: box }).mark };
}

/** The value as a field, in which it can be typed. */
function figureField(key, label, app, stepBy) {
  let isTyped = false;
  const ends = key.range?.map((end) => outward(key, end));
  const field = h("input", {
    class: "figure", type: "text", inputmode: "decimal", role: "spinbutton", autocomplete: "off", "aria-label": `${label}, ${t("typeValue")}`,
    "aria-valuemin": ends && Math.min(...ends), "aria-valuemax": ends && Math.max(...ends), enterkeyhint: "send", size: widthOf(key),
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
        // The first Escape restores the value and leaves the field; the next one closes the sheet.
        event.preventDefault();
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
  const commit = () => {
    if (!isTyped) return;
    isTyped = false;
    const text = field.value.trim();
    if (text === "") return;
    // The gateway knows the range that a percentage is a part of.
    const isShare = text.endsWith("%") && unitOf(key) !== "%";
    const plain = text.endsWith("%") ? text.slice(0, -1) : text;
    const number = readNumber(plain);
    if (number === null) app.misread(key, unreadable(plain));
    else if (isShare) app.set(key, `${number}%`, null);
    else app.set(key, inward(key, number));
  };
  const update = () => {
    const value = key.shown;
    const shown = textOf(key, value);
    if (!isTyped && field.value !== shown) {
      field.value = shown;
      // What is typed next replaces it.
      if (document.activeElement === field) field.select();
    }
    set(field, "aria-valuenow", typeof value === "number" ? outward(key, value) : null);
    set(field, "aria-valuetext", spoken(key, value));
    set(field, "aria-invalid", key.refusal ? "true" : null);
  };
  return { field, update };
}

function widthOf(key) {
  const ends = key.range ?? [0, 1000];
  return Math.max(2, ...ends.map((end) => textOf(key, snapped({ ...key, range: null }, end)).length));
}

/** A button that steps once, and repeats while it is held. */
export function stepButton(name, label, step, isExtra) {
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
