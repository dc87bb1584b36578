// Settle
// SPDX-License-Identifier: Apache-2.0

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
