// Settle
// SPDX-License-Identifier: Apache-2.0

// The controls, one for each type of property.

import { color } from "./color-control.js";
import { h, hide, icon, set } from "./dom.js";
import { number } from "./number-control.js";
import { directionOf, inOrder, isMovement } from "./kinds.js";
import { readable, same } from "./values.js";
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
    ...[[true, "on"], [false, "off"]].map(([value, word]) => h("button", {
      type: "button", class: "button", "aria-label": `${label}: ${t(word)}`, onclick: () => {
        put(value);
        button.focus();
      },
    }, t(word))));
  return {
    aside: h("span", { class: "toggle" }, button, choices), body: null,
    update: () => {
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

function text(key, label, app) {
  let isTyped = false;
  // What was shown when the draft was begun: a newer value replaces a draft that was left.
  let basis;
  const field = h("input", {
    class: "field", type: "text", dir: "auto", "aria-label": label, autocomplete: "off", enterkeyhint: "send",
    oninput: () => {
      if (!isTyped) basis = key.shown;
      isTyped = true;
    },
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
    if (key.type === "action") app.press(key, field.value);
    else app.set(key, field.value);
  };
  const update = () => {
    if (isTyped && document.activeElement !== field && !same(basis, key.shown)) isTyped = false;
    set(field, "aria-invalid", key.refusal ? "true" : null);
    if (isTyped || key.type === "action") return;
    const shown = key.shown ?? "";
    if (field.value !== shown) field.value = shown;
  };
  const body = h("div", { class: "typing" }, field, h("button", { type: "button", class: "round", "aria-label": `${label}: ${t("send")}`, onclick: send }, icon("send")));
  return { aside: null, body, update };
}
