// Settle
// SPDX-License-Identifier: Apache-2.0

// Accessibility checks. Run inside the page; returns a list of mistakes, in words.

const problems = [];
const INTERACTIVE = "a[href], button, input, select, textarea, [role=switch], [role=slider], [tabindex='0']";

// What an open dialog covers cannot be reached.
const modal = document.querySelector("dialog:modal");

const isShown = (node) => {
  if (modal && !modal.contains(node)) return false;
  if (node.closest("[hidden], .visually-hidden, dialog:not([open])")) return false;
  const style = getComputedStyle(node);
  const box = node.getBoundingClientRect();
  return style.visibility !== "hidden" && style.display !== "none" && box.width > 0 && box.height > 0;
};

const where = (node) => {
  const key = node.closest("[data-key]")?.dataset.key;
  const text = (node.getAttribute("aria-label") || node.textContent || node.id || "").trim().slice(0, 40);
  return `${node.tagName.toLowerCase()}${node.id ? "#" + node.id : ""}${node.className && typeof node.className === "string" ? "." + node.className.split(" ").join(".") : ""} “${text}”${key ? " of " + key : ""}`;
};

// Names

const nameOf = (node) => {
  const by = node.getAttribute("aria-labelledby");
  if (by) return by.split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();
  if (node.getAttribute("aria-label")) return node.getAttribute("aria-label").trim();
  if (node.labels?.length) return [...node.labels].map((label) => label.textContent).join(" ").trim();
  if (node.tagName === "BUTTON" || node.tagName === "A") return node.textContent.trim();
  return (node.getAttribute("title") ?? "").trim();
};

const names = new Map();
for (const node of document.querySelectorAll(INTERACTIVE)) {
  if (!isShown(node)) continue;
  const name = nameOf(node);
  if (!name) problems.push(`no name: ${where(node)}`);
  if (node.type !== "radio") {
    if (names.has(name)) problems.push(`two are called “${name}”: ${where(node)} and ${where(names.get(name))}`);
    names.set(name, node);
  }
  const box = (node.type === "checkbox" ? node.closest("label") : node).getBoundingClientRect();
  if (box.width < 43.5 || box.height < 43.5) {
    problems.push(`smaller than 44 pixels (${box.width.toFixed(1)} × ${box.height.toFixed(1)}): ${where(node)}`);
  }
  if (node.getAttribute("role") === "spinbutton" && !node.hasAttribute("aria-valuenow")) problems.push(`no aria-valuenow: ${where(node)}`);
  if (node.getAttribute("role") === "switch" && !node.hasAttribute("aria-checked")) problems.push(`no aria-checked: ${where(node)}`);
  if (node.type === "range" && !node.getAttribute("aria-valuetext")) problems.push(`no aria-valuetext: ${where(node)}`);
}
for (const node of document.querySelectorAll("svg")) {
  if (isShown(node) && node.getAttribute("aria-hidden") !== "true" && !node.getAttribute("aria-label")) problems.push(`a picture without words: ${where(node)}`);
}

// Structure

for (const [selector, count] of [["main", 1], ["header", 1], ["h1", 1], ["search, [role=search]", 1], ["[aria-live=assertive]", 1], ["[aria-live=polite]", 1]]) {
  const found = document.querySelectorAll(selector).length;
  if (found !== count) problems.push(`${found} of ${selector}, not ${count}`);
}
if (!document.documentElement.lang) problems.push("the page's language is not said");
if (!document.title) problems.push("the page has no title");
const ids = new Set();
for (const node of document.querySelectorAll("[id]")) {
  if (ids.has(node.id)) problems.push(`two have the id ${node.id}`);
  ids.add(node.id);
}
for (const attribute of ["aria-labelledby", "aria-describedby", "for"]) {
  for (const node of document.querySelectorAll(`[${attribute}]`)) {
    for (const id of node.getAttribute(attribute).split(/\s+/)) {
      if (!document.getElementById(id)) problems.push(`${attribute} leads to nothing (${id}): ${where(node)}`);
    }
  }
}
for (const group of document.querySelectorAll("[role=group], [role=radiogroup], section, dialog[open]")) {
  if (isShown(group) && !nameOf(group)) problems.push(`a group without a name: ${where(group)}`);
}
// The headings of a dialog are below that of the page.
let level = modal ? 1 : 0;
for (const heading of document.querySelectorAll("h1, h2, h3")) {
  if (!isShown(heading)) continue;
  const own = Number(heading.tagName[1]);
  if (own > level + 1) problems.push(`a heading skips a level: ${where(heading)}`);
  level = own;
}
if (document.documentElement.scrollWidth > innerWidth) problems.push(`scrolls sideways: ${document.documentElement.scrollWidth} in ${innerWidth}`);
for (const node of document.querySelectorAll("main *, header *")) {
  const box = node.getBoundingClientRect();
  // A line that scrolls by itself reaches as far as it likes.
  const scrolls = node.parentElement.closest(".shelf, .sums, .scene-row");
  if (!scrolls && isShown(node) && (box.right > innerWidth + 1 || box.left < -1)) {
    problems.push(`reaches beyond the page: ${where(node)}`);
    break;
  }
}

// Contrast

const parse = (text) => {
  const numbers = text.match(/-?[\d.]+(e-?\d+)?/g)?.map(Number) ?? [0, 0, 0, 0];
  if (text.startsWith("color(srgb")) return [...numbers.slice(0, 3).map((c) => c * 255), numbers[3] ?? 1];
  if (text.startsWith("rgb")) return [...numbers.slice(0, 3), numbers[3] ?? 1];
  throw new Error(`a color of another kind: ${text}`);
};
const over = (top, below) => [0, 1, 2].map((c) => top[c] * top[3] + below[c] * (1 - top[3])).concat(1);
const backOf = (node) => {
  const layers = [];
  for (let at = node; at; at = at.parentElement) {
    const color = parse(getComputedStyle(at).backgroundColor);
    if (color[3] > 0) layers.push(color);
    if (color[3] === 1) break;
  }
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
};
const luminance = ([r, g, b]) => {
  const [R, G, B] = [r, g, b].map((c) => {
    const share = c / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * R + 0.7152 * G + 0.0722 * B;
};
const ratio = (a, b) => {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};
const seen = new Set();
let lowest = 99;
const check = (node, least) => {
  const style = getComputedStyle(node);
  const back = backOf(node);
  let color = parse(style.color);
  for (let at = node; at; at = at.parentElement) color = [...color.slice(0, 3), color[3] * Number(getComputedStyle(at).opacity)];
  const value = ratio(over(color, back), back);
  lowest = Math.min(lowest, value);
  if (value < least) problems.push(`contrast ${value.toFixed(2)}: ${where(node)}`);
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || seen.has(node) || !isShown(node) || node.closest(":disabled, option, noscript, script")) continue;
  seen.add(node);
  check(node, 4.5);
}
for (const node of document.querySelectorAll("input:not([type=range], [type=color], [type=radio], [type=checkbox]), select")) {
  if (isShown(node)) check(node, 4.5);
}

return { problems, lowest, texts: seen.size, controls: names.size };
