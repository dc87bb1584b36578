// Settle
// SPDX-License-Identifier: Apache-2.0

// What kind of tile a device has, and which of its properties the tile shows.

import { hexOf, hexOfKelvin, legible } from "./colors.js";

const UP_DOWN = { open: "up", up: "up", close: "down", down: "down", stop: "stop", halt: "stop", pause: "stop" };

/** Whether an action moves a cover. */
export function isMovement(key) {
  return key.type === "action" && Boolean(key.values?.length) && key.values.every((word) => UP_DOWN[word.toLowerCase()]);
}

/** The direction of a cover's word: up, stop or down. */
export function directionOf(word) { return UP_DOWN[word.toLowerCase()]; }

/** The words of a cover in the order of its buttons: up, stop, down. */
export function inOrder(words) {
  const place = (word) => ["up", "stop", "down"].indexOf(directionOf(word));
  return [...words].sort((a, b) => place(a) - place(b));
}

/**
 * The plan of a device's tile: its `kind`, its `main` property, which the tile changes directly, its `power`,
 * and the others by what they are. Names decide where types alone do not.
 */
export function planOf(device) {
  const writable = device.keys.filter((key) => !key.isReadOnly);
  const readings = device.keys.filter((key) => key.isReadOnly);
  const find = (test) => writable.find(test) ?? null;
  const isNumber = (key) => key.type === "number" || key.type === "integer";
  const named = (pattern) => find((key) => isNumber(key) && key.range && pattern.test(key.id));
  const booleans = writable.filter((key) => key.type === "boolean");
  const plan = {
    readings,
    power: booleans.find((key) => /^(power|state|on|on_?off|switch|relay|light|output)/i.test(key.id)) ?? (booleans.length === 1 ? booleans[0] : null),
    brightness: named(/bright|dim|luminance/i),
    white: named(/colou?r_?temp|^ct$|mired|kelvin/i),
    color: find((key) => key.type === "color"),
    mode: find((key) => key.type === "choice"),
    movement: find(isMovement),
    position: named(/position|lift/i),
    setpoint: find((key) => isNumber(key) && /setpoint|set_?point|(target|desired|occupied).*temp/i.test(key.id)),
    actual: readings.find((key) => /temp/i.test(key.id)) ?? null,
  };
  const [kind, main] = plan.setpoint ? ["climate", plan.setpoint]
    : plan.movement || plan.position ? ["cover", plan.position ?? plan.movement]
      : plan.brightness || plan.color || plan.white ? ["light", plan.brightness ?? plan.white ?? plan.color]
        : other(writable, plan, isNumber);
  return { ...plan, kind, main };
}

function other(writable, plan, isNumber) {
  const number = writable.find((key) => isNumber(key) && key.range) ?? writable.find(isNumber);
  if (number) return ["number", number];
  if (plan.power) return ["switch", plan.power];
  const main = writable[0] ?? null;
  return [main ? main.type : "reading", main];
}

/** The color of a lamp's light on a screen, bright enough for dark text. */
export function lightOf(plan) {
  const { color, white } = plan;
  // A lamp is in one mode: what was changed last says which.
  const newest = color && white ? ((color.endedAt ?? 0) >= (white.endedAt ?? 0) ? color : white) : color ?? white;
  if (newest && newest === color) {
    const text = hexOf(color.shown);
    if (text) return legible(text);
  }
  if (newest && newest === white && typeof white.shown === "number" && white.shown > 0) {
    return legible(hexOfKelvin(white.shown < 1000 ? 1e6 / white.shown : white.shown));
  }
  return "#ffcf7a";
}
