// Settle
// SPDX-License-Identifier: Apache-2.0

// Reads and formats values, in the number format of the page's language.

import { locale, nameOf, t, wordOf } from "./words.js";

/** The number of decimals of a step. */
function decimalsOf(step) {
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

// What people read: `display` of a property says in which unit, and how to convert. The wire never changes.

/** A number as people read it. */
export function outward({ display }, value) {
  const scale = display?.scale;
  if (!scale) return value;
  if (scale === "mired") return value > 0 ? 1e6 / value : 0;
  const [[low, high], [from, to]] = [scale.from, scale.to];
  return from + ((value - low) * (to - from)) / (high - low);
}

/** The number of the property that people read as `value`. */
export function inward(key, value) {
  const scale = key.display?.scale;
  if (!scale) return value;
  if (scale === "mired") return value > 0 ? snapped(key, 1e6 / value) : key.range?.[1] ?? 0;
  const [[low, high], [from, to]] = [scale.from, scale.to];
  return snapped(key, low + ((value - from) * (high - low)) / (to - from));
}

/** Whether people read a larger number where the property has a smaller one: kelvin of mired. */
export function isMirrored(key) { return Boolean(key.range) && outward(key, key.range[0]) > outward(key, key.range[1]); }

export function unitOf(key) { return key.display?.unit ?? key.unit; }

/** The number after so many presses, in steps that people see. */
export function stepped(key, value, count) {
  const scale = key.display?.scale;
  if (!scale) return snapped(key, value + count * stepOf(key));
  const step = scale === "mired" ? 100 : 10 ** -(scale.decimals ?? 0);
  const next = inward(key, Math.round(outward(key, value) / step) * step + count * step);
  // Where a step of the property is larger than that, one step of the property.
  return next === value ? snapped(key, value + Math.sign(count) * stepOf(key)) : next;
}

/** The value of the first press on a number that is not known: the middle of its range, otherwise one step. */
export function firstValue(key, count) {
  return key.range ? snapped(key, (key.range[0] + key.range[1]) / 2) : snapped(key, count * stepOf(key));
}

// Numbers as people of this browser's language write them

const formats = new Map();

/** A number with that many decimals, without grouping, as it is typed. */
export function typed(value, decimals) {
  const name = `${locale} ${decimals}`;
  if (!formats.has(name)) {
    formats.set(name, new Intl.NumberFormat(locale, {
      useGrouping: false, minimumFractionDigits: decimals, maximumFractionDigits: decimals,
    }));
  }
  return formats.get(name).format(value).replace("−", "-");
}

/** A count, with grouping. */
export function counted(value) { return value.toLocaleString(locale); }

/** The digits and the decimal separator of the page's language. */
function script() {
  const format = new Intl.NumberFormat(locale, { useGrouping: false });
  const digits = [...format.format(9876543210)].reverse();
  return { digits, point: format.formatToParts(1.5).find((part) => part.type === "decimal")?.value ?? "." };
}

/**
 * Reads a number; null if the text is none. The language's own digits and separator are understood. Where a
 * comma separates, a point does too, unless three digits follow: that could be grouping.
 */
export function readNumber(text, { digits, point } = script()) {
  let plain = text.trim().replace(/[−–]/g, "-");
  for (const [value, digit] of digits.entries()) plain = plain.replaceAll(digit, String(value));
  if (point !== ".") {
    if (/\.\d{3}$/.test(plain)) return null;
    plain = plain.replace(point, ".");
  }
  return /^[+-]?(\d+\.?\d*|\.\d+)$/.test(plain) ? Number(plain) : null;
}

/** Why a text is not a number for sure, with what it may mean. */
export function unreadable(text) {
  const plain = text.trim().replace(/[−–]/g, "-");
  const parts = plain.split(/[.,]/);
  const separators = plain.match(/[.,]/g) ?? [];
  const meant = [];
  // All separators may group digits, or the last one may be that of the decimals.
  if (parts.length > 1 && parts.slice(1).every((part) => part.length === 3)) meant.push(parts.join(""));
  if (parts.length > 1 && separators.indexOf(separators.at(-1)) === separators.length - 1) {
    meant.push(`${parts.slice(0, -1).join("")}.${parts.at(-1)}`);
  }
  const numbers = meant.map(Number).filter(Number.isFinite).map((number) => typed(number, decimalsOf(number)));
  if (numbers.length === 0) return t("noNumber", text);
  return numbers.length === 1 ? t("thatNumber", text, numbers[0]) : t("whichNumber", text, ...numbers);
}

/** The text of a value; a dash for none. */
export function textOf(key, value) {
  if (value === null || value === undefined) return "–";
  switch (key.type) {
    case "number":
    case "integer": {
      if (typeof value !== "number") return String(value);
      if (key.display?.scale) return typed(outward(key, value), key.display.scale.decimals ?? 0);
      const own = decimalsOf(Number(value.toPrecision(12)));
      return typed(value, Math.max(decimalsOf(key.step), Math.min(own, key.isReadOnly && !key.step ? enough(key, value) : 3)));
    }
    case "boolean": return (key.isWorded ? wordOf(key.class, value !== key.isReversed) : null) ?? (value ? t("on") : t("off"));
    case "color": return hexOf(value) ?? "–";
    default: return String(value);
  }
}

/** How many decimals of a reading without a step say something. */
function enough(key, value) {
  if (key.unit?.startsWith("°")) return 1;
  return Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
}

/** A number that was reported, as people read it, with the decimals that say something. */
export function rounded(key, number) { return typed(number, Math.min(decimalsOf(Number(number.toPrecision(12))), enough(key, number))); }

/** The milliseconds of a unit of time. */
const TIMES = { s: 1000, min: 60_000 };

/** A long time in a larger unit, such as 24 h; null for what is none. */
function longTime(key, value) {
  const unit = TIMES[unitOf(key)];
  return unit && value * unit >= 7_200_000 ? duration(outward(key, value) * unit) : null;
}

/** The text of a value with its unit, for sentences and screen readers. */
export function spoken(key, value) {
  if (value === null || value === undefined) return t("unknown");
  const long = longTime(key, value);
  if (long) return long;
  const text = key.type === "choice" || key.type === "action" ? readable(value) : textOf(key, value);
  const unit = unitOf(key);
  return unit && typeof value === "number" ? `${text} ${unit}` : text;
}

/** The text of a value where there is little room: degrees without their scale, and no long unit. */
export function short(key, value) {
  const long = longTime(key, value);
  if (long) return long;
  const text = textOf(key, value);
  const unit = unitOf(key);
  if (!unit || typeof value !== "number") return text;
  return unit.startsWith("°") ? `${text}°` : unit.length > 2 ? text : `${text} ${unit}`;
}

/** Makes identifiers readable: OPEN becomes Open, target_temperature becomes Target temperature. */
export function readable(id) {
  const known = nameOf(String(id).toLowerCase());
  if (known) return known;
  const words = String(id).replace(/[_-]+/g, " ").trim();
  const plain = words === words.toUpperCase() ? words.toLowerCase() : words;
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

export function same(a, b) {
  return a === b || JSON.stringify(a ?? null) === JSON.stringify(b ?? null);
}

/** A text in which words are found: without case and accents, and with ä as a, ae as a. */
export function folded(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/ß/g, "ss").replace(/([aou])e/g, "$1");
}

/** Formats milliseconds: 43000 as "43 s", 300 as "300 ms", a day as "24 h". */
export function duration(milliseconds) {
  if (milliseconds < 1000) return t("ms", Math.round(milliseconds));
  const seconds = milliseconds / 1000;
  if (seconds < 120) return t("s", seconds < 10 && seconds % 1 ? typed(seconds, 1) : Math.round(seconds));
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return t("min", minutes);
  const hours = Math.floor(minutes / 60);
  if (hours >= 48) return t("d", Math.round(hours / 24));
  return minutes % 60 === 0 ? t("h", hours) : `${t("h", hours)} ${t("min", minutes % 60)}`;
}

/** "1 change", "1,200 changes". */
export function changes(count) { return t("changes", count, counted(count)); }

export function commands(count) { return t("commands", count, counted(count)); }

// Converts colors between the forms of devices, and to what a screen shows of a lamp.

/** Converts a color in any form to #rrggbb; null if it is not a color. */
export function hexOf(color) {
  if (typeof color === "string") return /^#[0-9a-f]{6}$/i.test(color) ? color.toLowerCase() : null;
  if (!color || typeof color !== "object") return null;
  if ("r" in color) return hex([color.r, color.g, color.b]);
  if ("h" in color) return hex(rgbOf(color.h, color.s));
  if ("x" in color) return hex(rgbOfXY(color.x, color.y));
  return null;
}

/** Converts a color to hue in degrees, saturation in percent and brightness from 0 to 1. */
export function hueOf(color) {
  if (color && typeof color === "object" && "h" in color) return { h: color.h, s: color.s, v: 1 };
  const text = hexOf(color);
  if (!text) return { h: 0, s: 0, v: 1 };
  const [r, g, b] = channels(text).map((c) => c / 255);
  const high = Math.max(r, g, b);
  const span = high - Math.min(r, g, b);
  if (span === 0) return { h: 0, s: 0, v: high };
  const turn = high === r ? ((g - b) / span) % 6 : high === g ? (b - r) / span + 2 : (r - g) / span + 4;
  return { h: Math.round((turn * 60 + 360) % 360), s: Math.round((span / high) * 100), v: high };
}

/**
 * The color of that hue and saturation, in the form of `shown`. A hex color includes its brightness, which
 * stays; a black one gets full brightness.
 */
export function recolored(shown, h, s) {
  if (typeof shown !== "string" && !(shown && "r" in shown)) return { h, s };
  const { v } = hueOf(shown);
  const rgb = rgbOf(h, s).map((c) => c * (v > 0 ? v : 1));
  if (typeof shown === "string") return hex(rgb);
  const [r, g, b] = rgb.map(Math.round);
  return { r, g, b };
}

/** The color of light of a temperature, from 1,000 to 40,000 kelvin (an approximation by Tanner Helland). */
export function hexOfKelvin(kelvin) {
  const k = Math.min(400, Math.max(10, kelvin / 100));
  const red = k <= 66 ? 255 : 329.7 * (k - 60) ** -0.1332;
  const green = k <= 66 ? 99.47 * Math.log(k) - 161.12 : 288.12 * (k - 60) ** -0.0755;
  const blue = k >= 66 ? 255 : k <= 19 ? 0 : 138.52 * Math.log(k - 10) - 305.04;
  return hex([red, green, blue]);
}

/** A color bright enough for dark text on it: mixed with white where it is too dark. */
export function legible(text) {
  let rgb = channels(text);
  // 0.3 against the ink of the page gives a contrast above 4.5.
  for (let count = 0; count < 12 && luminance(rgb) < 0.3; count += 1) rgb = rgb.map((c) => c + (255 - c) * 0.12);
  return hex(rgb);
}

function luminance(rgb) {
  const [r, g, b] = rgb.map((c) => (c <= 10 ? c / 3294 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function channels(text) { return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)); }

function hex(rgb) {
  return "#" + rgb.map((c) => Math.round(Math.min(255, Math.max(0, c))).toString(16).padStart(2, "0")).join("");
}

function rgbOf(hue, saturation) {
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
