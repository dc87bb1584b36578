// Settle
// SPDX-License-Identifier: Apache-2.0

// Reads and formats values, in the number format of the browser.

import { hexOf } from "./colors.js";
import { t } from "./words.js";

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
  if (!formats.has(decimals)) {
    formats.set(decimals, new Intl.NumberFormat(undefined, {
      useGrouping: false, minimumFractionDigits: decimals, maximumFractionDigits: decimals,
    }));
  }
  return formats.get(decimals).format(value).replace("−", "-");
}

/** A count, with grouping. */
export function counted(value) { return value.toLocaleString(); }

/** The digits and the decimal separator of the browser's language. */
const script = (() => {
  const format = new Intl.NumberFormat(undefined, { useGrouping: false });
  const digits = [...format.format(9876543210)].reverse();
  return { digits, point: format.formatToParts(1.5).find((part) => part.type === "decimal")?.value ?? "." };
})();

/**
 * Reads a number; null if the text is none. The browser's own digits and separator are understood. Where a
 * comma separates, a point does too, unless three digits follow: that could be grouping.
 */
export function readNumber(text, { digits, point } = script) {
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
  // The last separator may be that of the decimals, or all of them may group digits.
  const parts = text.trim().replace(/[−–]/g, "-").split(/[.,]/);
  const meant = new Set();
  if (parts.length > 1) {
    if (parts.slice(1).every((part) => part.length === 3)) meant.add(parts.join(""));
    meant.add(`${parts.slice(0, -1).join("")}.${parts.at(-1)}`);
  }
  const numbers = [...meant].map(Number).filter(Number.isFinite).map((number) => typed(number, decimalsOf(number)));
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
      return typed(value, Math.max(decimalsOf(key.step), Math.min(own, 3)));
    }
    case "boolean": return value ? t("on") : t("off");
    case "color": return hexOf(value) ?? "–";
    default: return String(value);
  }
}

/** The text of a value with its unit, for sentences and screen readers. */
export function spoken(key, value) {
  if (value === null || value === undefined) return t("unknown");
  const text = textOf(key, value);
  const unit = unitOf(key);
  return unit && typeof value === "number" ? `${text} ${unit}` : text;
}

/** The text of a value where there is little room: degrees without their scale, and no long unit. */
export function short(key, value) {
  const text = textOf(key, value);
  const unit = unitOf(key);
  if (!unit || typeof value !== "number") return text;
  return unit.startsWith("°") ? `${text}°` : unit.length > 2 ? text : `${text} ${unit}`;
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
  if (milliseconds < 1000) return t("ms", Math.round(milliseconds));
  const seconds = milliseconds / 1000;
  if (seconds < 120) return t("s", seconds < 10 && seconds % 1 ? typed(seconds, 1) : Math.round(seconds));
  return t("min", Math.round(seconds / 60));
}

/** "1 change", "1,200 changes". */
export function changes(count) { return t("changes", count, counted(count)); }

export function commands(count) { return t("commands", count, counted(count)); }
