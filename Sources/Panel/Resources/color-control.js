// Settle
// SPDX-License-Identifier: Apache-2.0

// A color by hue and saturation, or by the browser's picker.

import { hexOf, hueOf, recolored } from "./colors.js";
import { h, set } from "./dom.js";
import { bindPointer } from "./pointer.js";
import { t } from "./words.js";

export function color(key, label, app) {
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
