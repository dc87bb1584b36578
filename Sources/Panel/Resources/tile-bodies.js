// Settle
// SPDX-License-Identifier: Apache-2.0

// What a tile has below its name, by its kind. Each body is `{ node, mark, update(now, isOff), text(isOff) }`:
// `mark` is the ring of the main property, `text` what the tile says when nothing happens, and `sign`, if there is
// one, what it has in place of an icon.

import { toggle } from "./controls.js";
import { h, icon, say, set } from "./dom.js";
import { directionOf, inOrder } from "./kinds.js";
import { BoxMark } from "./mark.js";
import { stepButton, stepper } from "./number-control.js";
import { labelOf } from "./key.js";
import { shareOf, ThickSlider } from "./thick.js";
import { readable, short, spoken, textOf } from "./values.js";
import { t } from "./words.js";

export function bodyFor(plan, app) {
  switch (plan.kind) {
    case "climate": return steps(plan, app);
    case "cover": return plan.movement ? cover(plan, app) : slider(plan, app);
    case "light":
    case "number": return plan.main.range ? slider(plan, app) : plan.main.type === "color" ? nothing(plan) : steps(plan, app);
    case "switch": return power(plan, app);
    case "choice": return choice(plan, app);
    case "action": return action(plan, app);
    case "reading": return figures(plan);
    default: return nothing(plan);
  }
}

function slider({ main, power: powerKey, kind }, app) {
  const thick = new ThickSlider(main, labelOf(main), app);
  return {
    node: h("div", { class: "tile-body" }, thick.node), mark: thick.mark,
    update: (_, isOff) => thick.update(isOff, t("off")),
    text: () => (powerKey ? spoken(powerKey, powerKey.shown) : kind === "light" ? "" : main.name ?? readable(main.id)),
  };
}

/** Actual and target; the target between − and +. */
function steps({ main, actual, mode }, app) {
  const label = labelOf(main);
  const figure = h("span", { class: "tile-figure" });
  const mark = new BoxMark();
  const step = stepper(main, app);
  return {
    node: h("div", { class: "tile-body tile-steps" }, stepButton("minus", `${label}: ${t("less")}`, () => step(-1)),
      h("span", { class: "boxed" }, mark.node, figure), stepButton("plus", `${label}: ${t("more")}`, () => step(1))),
    mark,
    update: () => say(figure, short(main, main.shown)),
    text: () => [actual ? t("now", spoken(actual, actual.shown)) : null, mode ? readable(mode.shown ?? "") : null].filter((part) => part).join(" · ")
      || (main.name ?? readable(main.id)),
  };
}

/** A window with its blind, and up, stop and down: stop is the largest. */
function cover({ movement, position }, app) {
  const label = labelOf(movement);
  const shade = h("span", { class: "shade" });
  const buttons = inOrder(movement.values).map((word) => h("button", {
    type: "button", class: `button move-${directionOf(word)}`, "aria-label": `${label}: ${readable(word)}`,
    onclick: () => app.press(movement, word),
  }, icon(directionOf(word))));
  return {
    node: h("div", { class: "tile-body moves", role: "group", "aria-label": label }, ...buttons),
    sign: position ? h("span", { class: "window", "aria-hidden": "true" }, shade) : null,
    mark: null,
    update: () => {
      const value = position?.actual ?? position?.shown;
      if (typeof value === "number") shade.style.setProperty("--shade", (1 - shareOf(position, value)).toFixed(3));
    },
    text: () => {
      const value = position?.shown;
      if (typeof value !== "number") return position ? t("unknown") : "";
      return value === position.range[1] ? t("open") : value === position.range[0] ? t("closed") : spoken(position, value);
    },
  };
}

function power({ main }, app) {
  const control = toggle(main, labelOf(main), app, [h("span", { class: "wide-on" }, t("on")), h("span", { class: "wide-off" }, t("off"))]);
  return { node: h("div", { class: "tile-body wide" }, control.aside), mark: null, update: control.update, text: () => spoken(main, main.shown) };
}

function choice({ main }, app) {
  const select = h("select", { class: "field", "aria-label": labelOf(main), onchange: () => app.set(main, select.value) },
    h("option", { value: "", disabled: true, hidden: true }, "–"), ...(main.values ?? []).map((word) => h("option", { value: word }, readable(word))));
  return {
    node: h("div", { class: "tile-body" }, select), mark: null, text: () => main.name ?? readable(main.id),
    update: () => {
      const value = main.values?.includes(main.shown) ? main.shown : "";
      if (select.value !== value) select.value = value;
    },
  };
}

function action({ main }, app) {
  if (!main.values?.length) return nothing({ main });
  const buttons = main.values.slice(0, 3).map((word) => h("button", {
    type: "button", class: "button", "aria-label": `${labelOf(main)}: ${readable(word)}`, onclick: () => app.press(main, word),
  }, readable(word)));
  return { node: h("div", { class: "tile-body moves" }, ...buttons), mark: null, update: () => {}, text: () => main.name ?? readable(main.id) };
}

/** Readings: small figures with their names. */
function figures({ readings }) {
  const cells = readings.slice(0, 3).map((key) => {
    const value = h("b", {});
    return { key, value, node: h("span", { class: "reading-cell" }, value, h("small", {}, key.name ?? readable(key.id))) };
  });
  return {
    node: h("div", { class: "tile-body readings" }, ...cells.map((cell) => cell.node)), mark: null, text: () => "",
    update: () => {
      for (const { key, value } of cells) {
        say(value, spoken(key, key.shown));
        set(value, "dir", "auto");
      }
    },
  };
}

function nothing({ main }) {
  const text = h("p", { class: "tile-text", dir: "auto" });
  return { node: h("div", { class: "tile-body" }, text), mark: null, update: () => say(text, main ? textOf(main, main.shown) : ""), text: () => (main ? main.name ?? readable(main.id) : "") };
}
