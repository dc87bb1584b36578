// Settle
// SPDX-License-Identifier: Apache-2.0

// The controls, one for each type of property.

import { h, hide, icon, say, set } from "./dom.js";
import { directionOf, inOrder, isMovement } from "./house.js";
import { BoxMark, Mark } from "./mark.js";
import { firstValue, hexOf, hueOf, inward, isMirrored, outward, readable, readNumber, recolored, same, short, snapped, spoken, stepOf, stepped, textOf, unitOf, unreadable } from "./values.js";
import { t } from "./words.js";

/**
 * Creates a control, `{ aside, body, update() }`: the element beside the name, the element below it, and
 * a function that updates both from the key. It requests changes by `app.set(key, value)` and `app.press(key, word)`.
 */
export function controlFor(key, label, app) {
  switch (key.type) {
    case "number":
    case "integer": return number(key, label, app);
    case "boolean": return toggle(key, label, app);
    case "choice": return choice(key, label, app);
    case "color": return color(key, label, app);
    case "action": return key.values?.length ? action(key, label, app) : text(key, label, app);
    default: return text(key, label, app);
  }
}

/** A switch; while the value is unknown, a button for each value, because there is nothing to toggle. */
export function toggle(key, label, app, words = []) {
  const put = (value) => app.set(key, value);
  const button = h("button", {
    type: "button", class: "switch", role: "switch", "aria-label": label, onclick: () => put(key.shown !== true),
  }, h("span", { class: "switch-track", "aria-hidden": "true" }, ...words, h("span", { class: "switch-thumb" })));
  const choices = h("span", { class: "either", role: "group", "aria-label": `${label}: ${t("unknown")}` },
    ...[true, false].map((value) => h("button", {
      type: "button", class: "button", "aria-label": `${label}: ${textOf(key, value)}`, onclick: () => {
        put(value);
        button.focus();
      },
    }, textOf(key, value))));
  // A lock says what it is beside its switch.
  const word = h("span", { class: "toggle-word" });
  return {
    aside: h("span", { class: "toggle" }, ...(key.isWorded && words.length === 0 ? [word] : []), button, choices), body: null,
    update: () => {
      say(word, typeof key.shown === "boolean" ? textOf(key, key.shown) : "");
      const isKnown = typeof key.shown === "boolean";
      hide(button, !isKnown);
      hide(choices, isKnown);
      set(button, "aria-checked", key.shown === true ? "true" : "false");
    },
  };
}

let groups = 0;

function choice(key, label, app) {
  const words = key.values ?? [];
  const put = (value) => app.set(key, value);
  if (words.length > 5 || words.join("").length > 30) {
    const select = h("select", { class: "field", "aria-label": label, onchange: () => put(select.value) });
    select.append(h("option", { value: "", disabled: true, hidden: true }, "–"));
    for (const word of words) select.append(h("option", { value: word }, readable(word)));
    return {
      aside: null, body: select,
      update: () => {
        const value = words.includes(key.shown) ? key.shown : "";
        if (select.value !== value) select.value = value;
      },
    };
  }
  groups += 1;
  const body = h("div", { class: "segments", role: "radiogroup", "aria-label": label });
  const radios = words.map((word) => {
    const radio = h("input", { type: "radio", name: `choice-${groups}`, value: word, onchange: () => put(word) });
    body.append(h("label", { class: "segment" }, radio, h("span", {}, readable(word))));
    return radio;
  });
  return {
    aside: null, body,
    update: () => {
      for (const radio of radios) {
        const isChosen = radio.value === key.shown;
        if (radio.checked !== isChosen) radio.checked = isChosen;
      }
    },
  };
}

function action(key, label, app) {
  const isCover = isMovement(key);
  const words = isCover ? inOrder(key.values) : key.values;
  const body = h("div", { class: "actions", role: "group", "aria-label": label });
  for (const word of words) {
    body.append(h("button", {
      type: "button", class: "button", "aria-label": `${label}: ${readable(word)}`, onclick: () => app.press(key, word),
    }, ...(isCover ? [icon(directionOf(word))] : []), h("span", {}, readable(word))));
  }
  return { aside: null, body, update: () => {} };
}

// Text

/** Marks a field in which something is typed that is not sent. */
function draft(field, isTyped) { field.toggleAttribute("data-typed", isTyped); }

function isDraft(field) { return field.hasAttribute("data-typed"); }

function text(key, label, app) {
  // What was shown when the draft was begun: a newer value replaces a draft that was left.
  let basis;
  const field = h("input", {
    class: "field", type: "text", dir: "auto", "aria-label": label, autocomplete: "off", enterkeyhint: "send",
    oninput: () => {
      if (!isDraft(field)) basis = key.shown;
      draft(field, true);
    },
    onkeydown: (event) => {
      if (event.key === "Enter") send();
      if (event.key === "Escape") {
        draft(field, false);
        update();
      }
    },
  });
  const send = () => {
    draft(field, false);
    if (key.type === "action") app.press(key, field.value);
    else app.set(key, field.value);
  };
  const update = () => {
    if (isDraft(field) && document.activeElement !== field && !same(basis, key.shown)) draft(field, false);
    set(field, "aria-invalid", key.refusal ? "true" : null);
    if (isDraft(field) || key.type === "action") return;
    const shown = key.shown ?? "";
    if (field.value !== shown) field.value = shown;
  };
  const body = h("div", { class: "typing" }, field, h("button", { type: "button", class: "round", "aria-label": `${label}: ${t("send")}`, onclick: send }, icon("send")));
  return { aside: null, body, update };
}

// A number: a slider where it has a range, steps, and a field to type it.

/** The steps of each key. */
const STEPS = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10 };

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

function number(key, label, app) {
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
  const ends = key.range?.map((end) => outward(key, end));
  const field = h("input", {
    class: "figure", type: "text", inputmode: "decimal", role: "spinbutton", autocomplete: "off", "aria-label": `${label}, ${t("typeValue")}`,
    "aria-valuemin": ends && Math.min(...ends), "aria-valuemax": ends && Math.max(...ends), enterkeyhint: "send", size: widthOf(key),
    onfocus: () => field.select(),
    onkeydown: (event) => {
      const count = event.key === "ArrowLeft" || event.key === "ArrowRight" ? 0 : STEPS[event.key];
      if (count) {
        event.preventDefault();
        draft(field, false);
        stepBy(count);
      } else if (event.key === "Enter") {
        commit();
        field.select();
      } else if (event.key === "Escape") {
        // The first Escape restores the value and leaves the field; the next one closes the sheet.
        event.preventDefault();
        draft(field, false);
        update();
        field.blur();
      }
    },
    oninput: () => draft(field, true),
    onblur: () => {
      commit();
      update();
    },
  });
  const commit = () => {
    if (!isDraft(field)) return;
    draft(field, false);
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
    if (!isDraft(field) && field.value !== shown) {
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

// A color by hue and saturation, or by the browser's picker.

function color(key, label, app) {
  const put = (value) => app.set(key, value);
  // Gray has no hue: the strip stays where it was.
  let turn = 0;
  const swatch = h("input", {
    type: "color", class: "swatch", "aria-label": `${label}, ${t("pick")}`,
    oninput: () => put(swatch.value),
  });
  const strip = (name, most, change) => {
    const range = h("input", {
      class: "range", type: "range", min: 0, max: most, step: 1, "aria-label": `${label}: ${name}`,
    });
    bindPointer(range, key, app, () => change(range.valueAsNumber), () => update());
    return range;
  };
  const hue = strip(t("hue"), 360, (value) => {
    turn = value;
    put(recolored(key.shown, turn, hueOf(key.shown).s || 100));
  });
  const saturation = strip(t("saturation"), 100, (value) => put(recolored(key.shown, turn, value)));
  const hueBox = h("div", { class: "slider", "data-tint": "hue" }, hue);
  const saturationBox = h("div", { class: "slider", "data-tint": "saturation" }, saturation);
  const update = () => {
    const shown = key.shown;
    const text = hexOf(shown);
    if (text && swatch.value !== text) swatch.value = text;
    set(swatch, "data-known", text ? "true" : "false");
    const { h: found, s } = hueOf(shown);
    // A hex color has the hue only roughly: while the strip is held, it says which.
    if (s > 0 && !key.held) turn = found;
    if (hue.valueAsNumber !== turn) hue.valueAsNumber = turn;
    if (saturation.valueAsNumber !== s) saturation.valueAsNumber = s;
    set(hue, "aria-valuetext", t("degrees", Math.round(turn)));
    set(saturation, "aria-valuetext", `${Math.round(s)} %`);
    saturationBox.style.setProperty("--hue", `hsl(${turn} 100% 50%)`);
  };
  const aside = h("span", { class: "reading" }, swatch);
  return { aside, body: h("div", { class: "strips" }, hueBox, saturationBox), update };
}

// The thick slider: a filled bar with the value inside, and the ring around its thumb.

/** The share of its range, from 0 to 1, at which a value is; what people read as more is further right. */
export function shareOf(key, value) {
  const [low, high] = key.range;
  const share = high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0;
  return isMirrored(key) ? 1 - share : share;
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
    this.ground = h("div", { class: "thick-base", "aria-hidden": "true" }, this.base);
    this.bar = h("div", { class: "thick-lit", "aria-hidden": "true" }, this.lit);
    this.thumb = h("div", { class: "thick-thumb" }, this.mark.node);
    this.node = h("div", { class: "thick", "data-side": "right" },
      this.ground, this.bar, this.actual, this.thumb, this.range);
    if (key.unit === "mired" || key.unit === "K") this.node.dataset.tint = isMirrored(key) ? "K" : key.unit;
    bindPointer(this.range, key, app, () => app.set(key, snapped(key, this.value)), () => this.follow());
    // Keys are the steps of − and +.
    const step = stepper(key, app);
    this.range.addEventListener("keydown", (event) => {
      const count = STEPS[event.key];
      if (!count) return;
      event.preventDefault();
      step(count);
    });
  }

  /** The other end's counterpart of a value, if the slider runs from the high end to the low one. */
  turned(value) { return isMirrored(this.key) ? this.key.range[0] + this.key.range[1] - value : value; }

  /** The value at which the slider is. */
  get value() { return this.turned(this.range.valueAsNumber); }

  /** Shows what the finger points at, before it is a change. */
  follow() { this.draw(this.value); }

  update(isOff = false, offText = "") {
    const { key, range } = this;
    const value = key.shown;
    const isKnown = typeof value === "number";
    const place = isKnown ? this.turned(value) : key.range[0];
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
      for (const part of [this.ground, this.bar, this.thumb]) part.style.setProperty("--fill", share.toFixed(4));
    }
    // With some slack, so that the text does not flicker from side to side.
    const side = this.node.dataset.side === "left" ? (share < 0.45 ? "right" : "left") : share > 0.55 ? "left" : "right";
    set(this.node, "data-side", side);
    for (const node of [this.base, this.lit]) say(node, shown);
  }
}

// Fingers on sliders.

/** The distance in pixels after which a touch counts as a drag. */
const SLACK = 6;

/**
 * Handles pointers on a slider. A touch may start a scroll of the page, so it changes the value only
 * after a horizontal move or when it is lifted.
 */
function bindPointer(range, key, app, change, follow) {
  let touch = null;
  const on = (name, listener) => range.addEventListener(name, listener);
  on("pointerdown", (event) => {
    touch = event.pointerType === "touch" ? { x: event.clientX, value: null } : null;
    app.hold(key, true);
  });
  on("pointermove", (event) => {
    if (touch && Math.abs(event.clientX - touch.x) > SLACK) touch = null;
  });
  on("input", () => {
    if (!touch) return change();
    touch.value = range.valueAsNumber;
    follow();
  });
  on("pointerup", () => {
    if (touch && touch.value !== null) {
      range.valueAsNumber = touch.value;
      change();
    }
    touch = null;
    app.hold(key, false);
  });
  on("pointercancel", () => {
    touch = null;
    follow();
    app.hold(key, false);
  });
  on("change", () => { if (!touch) app.hold(key, false); });
  on("blur", () => app.hold(key, false));
}
