// Settle
// SPDX-License-Identifier: Apache-2.0

// The controls, one for each type of property.

import { h, icon, set } from "./dom.js";
import { hexOf, hueOf, readable, same, snapped, spoken, stepOf, textOf } from "./values.js";

/**
 * Creates a control, `{ aside, body, update() }`: the element beside the name, the element below it, and
 * a function that updates both from the key. It requests changes by `app.change(key, operation, value)`.
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

// Numbers

function number(key, label, app) {
  const put = (value) => app.change(key, { set: value }, value);
  const stepBy = (count) => {
    const base = key.shown;
    if (typeof base !== "number") return app.change(key, { step: count * stepOf(key) }, undefined);
    const value = snapped(key, base + count * stepOf(key));
    if (!same(value, base)) put(value);
  };
  const field = h("input", {
    class: "figure", type: "text", inputmode: "decimal", role: "spinbutton", autocomplete: "off", "aria-label": `${label}, type a value`,
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
    const value = /^[+-]?(\d+\.?\d*|\.\d+)$/.test(typed) ? Number(typed) : typed;
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
  body.append(stepper("minus", `${label}: less`, () => stepBy(-1), slider), ...(track ? [track] : []),
    stepper("plus", `${label}: more`, () => stepBy(1), slider));

  const share = (value) => {
    const [low, high] = key.range;
    return high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0;
  };
  const update = () => {
    const value = key.shown;
    if (!isTyped) {
      const shown = textOf(key, value);
      if (field.value !== shown) field.value = shown;
    }
    const isKnown = typeof value === "number";
    set(field, "aria-valuenow", isKnown ? value : null);
    set(field, "aria-valuetext", isKnown ? spoken(key, value) : "unknown");
    if (!slider) return;
    const place = isKnown ? value : key.range[0];
    if (slider.valueAsNumber !== place) slider.valueAsNumber = place;
    set(slider, "aria-valuetext", isKnown ? spoken(key, value) : "unknown");
    track.style.setProperty("--fill", isKnown ? share(value) : 0);
    const elsewhere = key.elsewhere;
    actual.hidden = typeof elsewhere !== "number";
    if (!actual.hidden) track.style.setProperty("--actual", share(elsewhere));
  };
  return { aside, body, update };
}

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

// Booleans, choices, actions

function toggle(key, label, app) {
  const button = h("button", {
    type: "button", class: "switch", role: "switch", "aria-label": label,
    onclick: () => {
      const value = key.shown;
      if (typeof value === "boolean") app.change(key, { set: !value }, !value);
      else app.change(key, { toggle: true }, undefined);
    },
  }, h("span", { class: "switch-track" }, h("span", { class: "switch-thumb" })));
  return {
    aside: button, body: null,
    update: () => set(button, "aria-checked", key.shown === true ? "true" : "false"),
  };
}

let groups = 0;

function choice(key, label, app) {
  const words = key.values ?? [];
  const put = (value) => app.change(key, { set: value }, value);
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

const ICONS = { open: "up", up: "up", close: "down", down: "down", stop: "stop", halt: "stop", pause: "stop" };

function action(key, label, app) {
  // A cover's buttons are in the expected order: up, stop, down.
  const order = { up: 0, stop: 1, down: 2 };
  const words = [...key.values];
  const isCover = words.every((word) => ICONS[word.toLowerCase()]);
  if (isCover) {
    words.sort((a, b) => order[ICONS[a.toLowerCase()]] - order[ICONS[b.toLowerCase()]]);
  }
  const body = h("div", { class: "actions", role: "group", "aria-label": label });
  for (const word of words) {
    const sign = isCover && ICONS[word.toLowerCase()];
    body.append(h("button", {
      type: "button", class: "button", "aria-label": `${label}: ${readable(word)}`, onclick: () => app.change(key, { set: word }, undefined),
    }, ...(sign ? [icon(sign)] : []), h("span", {}, readable(word))));
  }
  return { aside: null, body, update: () => {} };
}

// Colors

function color(key, label, app) {
  const put = (value) => app.change(key, { set: value }, value);
  const swatch = h("input", {
    type: "color", class: "swatch", "aria-label": `${label}, pick a color`,
    oninput: () => put(swatch.value),
  });
  const strip = (name, most, change) => {
    const range = h("input", {
      class: "range", type: "range", min: 0, max: most, step: 1, "aria-label": `${label}: ${name}`,
    });
    bindPointer(range, key, app, () => change(range.valueAsNumber), () => update());
    return range;
  };
  const hue = strip("hue", 360, (value) => put({ h: value, s: hueOf(key.shown).s || 100 }));
  const saturation = strip("saturation", 100, (value) => put({ h: hueOf(key.shown).h, s: value }));
  const hueBox = h("div", { class: "slider", "data-tint": "hue" }, hue);
  const saturationBox = h("div", { class: "slider", "data-tint": "saturation" }, saturation);
  const update = () => {
    const shown = key.shown;
    const text = hexOf(shown);
    if (text && swatch.value !== text) swatch.value = text;
    set(swatch, "data-known", text ? "true" : "false");
    const { h: turn, s } = hueOf(shown);
    if (hue.valueAsNumber !== turn) hue.valueAsNumber = turn;
    if (saturation.valueAsNumber !== s) saturation.valueAsNumber = s;
    set(hue, "aria-valuetext", `${Math.round(turn)} degrees`);
    set(saturation, "aria-valuetext", `${Math.round(s)} %`);
    saturationBox.style.setProperty("--hue", `hsl(${turn} 100% 50%)`);
  };
  const aside = h("span", { class: "reading" }, swatch);
  return { aside, body: h("div", { class: "strips" }, hueBox, saturationBox), update };
}

// Text

function text(key, label, app) {
  let isTyped = false;
  const field = h("input", {
    class: "field", type: "text", "aria-label": label, autocomplete: "off", enterkeyhint: "send",
    oninput: () => { isTyped = true; },
    onkeydown: (event) => {
      if (event.key === "Enter") send();
      if (event.key === "Escape") {
        isTyped = false;
        update();
      }
    },
  });
  const send = () => {
    isTyped = false;
    app.change(key, { set: field.value }, key.type === "action" ? undefined : field.value);
  };
  const update = () => {
    if (isTyped || key.type === "action") return;
    const shown = key.shown ?? "";
    if (field.value !== shown) field.value = shown;
  };
  const body = h("div", { class: "typing" }, field, h("button", { type: "button", class: "round", "aria-label": `${label}: send`, onclick: send }, icon("send")));
  return { aside: null, body, update };
}
