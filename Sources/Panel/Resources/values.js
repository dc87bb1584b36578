// Settle
// SPDX-License-Identifier: Apache-2.0

// Formats values, and converts colors between the forms of devices.

/** The number of decimals of a step. */
export function decimalsOf(step) {
  if (!step || !Number.isFinite(step)) return 0;
  const text = step.toString();
  const power = text.indexOf("e-");
  if (power >= 0) return Math.min(6, Number(text.slice(power + 2)));
  const point = text.indexOf(".");
  return point < 0 ? 0 : Math.min(6, text.length - point - 1);
}

/** The amount of one press: the property's step, otherwise about a hundredth of its range. */
export function stepOf(key) {
  if (key.step > 0) return key.step;
  if (key.type === "integer" || !key.range) return 1;
  const span = key.range[1] - key.range[0];
  let amount = 1;
  while (amount > 0.001 && amount * 50 > span) amount /= 10;
  return amount;
}

/** Clamps a number to the range and snaps it to the step, without rounding errors. */
export function snapped(key, number) {
  const step = stepOf(key);
  const low = key.range ? key.range[0] : 0;
  let value = number;
  if (key.range) value = Math.min(key.range[1], Math.max(key.range[0], value));
  if (key.step > 0) {
    const count = (value - low) / step;
    value = low + Math.sign(count) * Math.floor(Math.abs(count) + 0.5 + 1e-9) * step;
    if (key.range && value > key.range[1] + step * 1e-6) value -= step;
  }
  return Number(value.toFixed(Math.max(decimalsOf(step), decimalsOf(low), 0)));
}

/** The text of a value; a dash for none. */
export function textOf(key, value) {
  if (value === null || value === undefined) return "–";
  switch (key.type) {
    case "number":
    case "integer": {
      if (typeof value !== "number") return String(value);
      const own = decimalsOf(Number(value.toPrecision(12)));
      return value.toFixed(Math.max(decimalsOf(key.step), Math.min(own, 3)));
    }
    case "boolean": return value ? "On" : "Off";
    case "color": return hexOf(value) ?? "–";
    default: return String(value);
  }
}

/** The text of a value with its unit, for sentences and screen readers. */
export function spoken(key, value) {
  const text = textOf(key, value);
  return key.unit && typeof value === "number" ? `${text} ${key.unit}` : text;
}

/** Makes identifiers readable: OPEN becomes Open, target_temperature becomes Target temperature. */
export function readable(id) {
  const words = String(id).replace(/[_-]+/g, " ").trim();
  const plain = words === words.toUpperCase() ? words.toLowerCase() : words;
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

export function same(a, b) {
  return a === b || JSON.stringify(a ?? null) === JSON.stringify(b ?? null);
}

/** Formats milliseconds: 43000 as "43 s", 300 as "300 ms". */
export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 120) return `${seconds < 10 && seconds % 1 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return `${Math.round(seconds / 60)} min`;
}

export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

// Colors

/** Converts a color in any form to #rrggbb; null if it is not a color. */
export function hexOf(color) {
  if (typeof color === "string") return /^#[0-9a-f]{6}$/i.test(color) ? color.toLowerCase() : null;
  if (!color || typeof color !== "object") return null;
  if ("r" in color) return hex([color.r, color.g, color.b]);
  if ("h" in color) return hex(rgbOfHue(color.h, color.s));
  if ("x" in color) return hex(rgbOfXY(color.x, color.y));
  return null;
}

/** Converts a color to hue in degrees and saturation in percent. */
export function hueOf(color) {
  if (color && typeof color === "object" && "h" in color) return { h: color.h, s: color.s };
  const text = hexOf(color);
  if (!text) return { h: 0, s: 0 };
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255);
  const high = Math.max(r, g, b);
  const span = high - Math.min(r, g, b);
  if (span === 0) return { h: 0, s: 0 };
  const turn = high === r ? ((g - b) / span) % 6 : high === g ? (b - r) / span + 2 : (r - g) / span + 4;
  return { h: Math.round((turn * 60 + 360) % 360), s: Math.round((span / high) * 100) };
}

function hex(channels) {
  return "#" + channels.map((c) => Math.round(Math.min(255, Math.max(0, c))).toString(16).padStart(2, "0")).join("");
}

function rgbOfHue(hue, saturation) {
  const part = (n) => {
    const k = (n + hue / 60) % 6;
    return 255 * (1 - (saturation / 100) * Math.max(0, Math.min(k, 4 - k, 1)));
  };
  return [part(5), part(3), part(1)];
}

function rgbOfXY(x, y) {
  if (!(y > 0)) return [255, 255, 255];
  const X = x / y;
  const Z = (1 - x - y) / y;
  const linear = [
    3.2406 * X - 1.5372 - 0.4986 * Z, -0.9689 * X + 1.8758 + 0.0415 * Z, 0.0557 * X - 0.204 + 1.057 * Z,
  ].map((c) => Math.max(0, c));
  const high = Math.max(...linear, 1e-6);
  return linear.map((c) => {
    const share = c / high;
    return 255 * (share <= 0.0031308 ? 12.92 * share : 1.055 * share ** (1 / 2.4) - 0.055);
  });
}
