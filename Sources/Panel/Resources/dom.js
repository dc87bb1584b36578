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
  left: "m14 6-6 6 6 6",
  right: "m10 6 6 6-6 6",
  star: "m12 4 2.4 5 5.6.7-4.1 3.8 1.1 5.5-5-2.7-5 2.7 1.1-5.5L4 9.700l5.600-.7z",
  bulb: "M9 18h6M10 21h4M8.500 14.500a6 6 0 1 1 7 0c-.8.700-1 1.500-1 3.500h-5c0-2-.2-2.800-1-3.500z",
  blind: "M4 4h16M5.500 4v12.500h13V4M5.500 8.200h13M5.500 12.400h13M12 16.500v4",
  flame: "M12 3.500c1 3.500 5.500 5.500 5.500 10.500a5.500 5.500 0 0 1-11 0c0-2.500 1.500-4 2.500-5.500.5 1.500 1.200 2 1.800 2.500.7-2.500.2-5 1.200-7.500z",
  plug: "M9 3.500v5M15 3.500v5M6.500 8.500h11v3a5.500 5.500 0 0 1-11 0zM12 17v4",
  dial: "M6.300 17.700a8 8 0 1 1 11.400 0M12 12l3.500-3.500",
  gauge: "M4 15.500a8 8 0 0 1 16 0M12 15.500l3-4.500",
  list: "M5 7h14M5 12h14M5 17h9",
  text: "M5 6.500h14M12 6.500v12",
  press: "M12 5v14M5 12h14",
};

export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}

/** Sets a text if it differs, because every assignment invalidates the layout. */
export function say(node, text) {
  const only = node.firstChild;
  if (!only) {
    if (text !== "") node.textContent = text;
  } else if (only.nodeType === Node.TEXT_NODE && !only.nextSibling) {
    if (only.data !== text) only.data = text;
  } else if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** Hides an element or shows it. */
export function hide(node, isHidden) {
  if (node.hidden !== isHidden) node.hidden = isHidden;
}

/** Hides an element or shows it; calls `refocus` if the focus was in what is hidden. */
export function vanish(node, isHidden, refocus) {
  const hadFocus = isHidden && node.contains(document.activeElement);
  hide(node, isHidden);
  if (hadFocus) refocus();
}

export function set(node, name, value) {
  if (value === null) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}
