// Settle
// SPDX-License-Identifier: Apache-2.0

// Creates elements without markup in strings, so that a device's name is never interpreted as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an element with attributes, `on…` handlers and children. */
export function h(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const PATHS = {
  minus: "M6 12h12",
  plus: "M6 12h12M12 6v12",
  up: "m6 14.5 6-6 6 6",
  down: "m6 9.5 6 6 6-6",
  stop: "M8 8h8v8H8z",
  close: "m7 7 10 10M17 7 7 17",
  retry: "M18.5 12a6.5 6.5 0 1 1-2-4.7M18.5 4.5v4h-4",
  send: "M5 12h13m-5.5-5.5 5.5 5.5-5.5 5.5",
};

export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}

/** Sets a text if it differs, because every assignment invalidates the layout. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function set(node, name, value) {
  if (value === null) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}
