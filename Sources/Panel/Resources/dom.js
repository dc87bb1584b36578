// Settle
// SPDX-License-Identifier: Apache-2.0

// Creates elements without markup in strings, so that a device's name is never interpreted as HTML.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

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
  grip: "M6 9v.1M12 9v.1M18 9v.1M6 15v.1M12 15v.1M18 15v.1",
  eye: "M2.500 12c2-4 5.500-6 9.500-6s7.500 2 9.500 6c-2 4-5.500 6-9.500 6s-7.500-2-9.500-6zM12 9.500a2.500 2.500 0 1 1 0 5a2.500 2.500 0 0 1 0-5",
  eyeOff: "M2.500 12c2-4 5.500-6 9.500-6s7.500 2 9.500 6c-2 4-5.500 6-9.500 6s-7.500-2-9.500-6zM5 20 19 4",
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
  lock: "M6.500 11h11v8.500h-11zM8.500 11V8a3.500 3.500 0 0 1 7 0v3",
  unlock: "M6.500 11h11v8.500h-11zM8.500 11V7.500a3.500 3.500 0 0 1 6.700-1.400",
  door: "M6.500 20.500V3.500h11v17M4 20.500h16M14 12v.1",
  doorOpen: "M6.500 20.500V3.500h11v17M4 20.500h16M6.500 3.500 12 6.500v14",
  window: "M5 4h14v16H5zM12 4v16M5 12h14",
  windowOpen: "M5 4h14v16H5zM12 4v16M5 4l4.500 3v10L5 20",
  garage: "M4 20.500V9l8-5 8 5v11.500M8 20.500V12h8v8.500M8 16h8",
  garageOpen: "M4 20.500V9l8-5 8 5v11.500M8 20.500V12h8v8.500",
  drop: "M12 3.500c3.500 4.500 5.500 7 5.500 10a5.500 5.500 0 0 1-11 0c0-3 2-5.500 5.500-10z",
  smoke: "M4.500 5h15v4.500h-15zM8.500 13c-1.500 1.500 1.500 2.500 0 4.500M12 13c-1.500 1.500 1.500 2.500 0 4.500M15.500 13c-1.500 1.500 1.500 2.500 0 4.500",
  motion: "M12.500 5.500a1.500 1.500 0 1 0 0-.1M8 10.500l3.500-1.500 2.500 3 3 .5M11.500 9.500l-1 5 3 2.500v4M10 16l-2.500 4.500",
  battery: "M7.500 5.500h9v15h-9zM10.500 3h3v2.500M10 17h4",
  warm: "M10 13.500V5a2 2 0 0 1 4 0v8.500a4 4 0 1 1-4 0zM12 9v7",
};

export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}

/** Changes the icon in an element. */
export function redraw(node, name) {
  const path = node.querySelector(".icon path");
  if (path) set(path, "d", PATHS[name]);
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

// When to draw: with the next frame, or, while much changes at once, at the next beat. Scrolling stays smooth
// then, because the frames between two beats only move what was drawn.

/** The time between two beats, in milliseconds. */
const BEAT = 125;
/** The page is busy if it draws more tiles than this in one beat. */
const CROWD = 12;
/** After this time without a busy beat, things move again at each frame. */
const CALM = 3000;

export class Pace {
  /** Sets `data-busy` on `node` while the page is busy. */
  constructor(node) {
    this.node = node;
    this.beat = 0;
    this.drawn = 0;
    this.calmTimer = 0;
  }

  get isBusy() { return this.calmTimer !== 0; }

  /** Calls `draw` before a frame: the next one, or the first of the next beat. */
  plan(draw) {
    if (!this.isBusy) return requestAnimationFrame(draw);
    // Beats are at fixed times, so that all that is drawn falls into the same frame.
    // Rounded up: a timer drops fractions, and one that fires before its beat would have two draws in it.
    setTimeout(() => requestAnimationFrame(draw), Math.ceil(BEAT - (performance.now() % BEAT)));
  }

  /** Counts tiles that were drawn. */
  count(tiles, now) {
    const beat = Math.floor(now / BEAT);
    if (beat !== this.beat) this.drawn = 0;
    this.beat = beat;
    this.drawn += tiles;
    if (this.drawn <= CROWD) return;
    clearTimeout(this.calmTimer);
    this.node.toggleAttribute("data-busy", true);
    this.calmTimer = setTimeout(() => {
      this.calmTimer = 0;
      this.node.toggleAttribute("data-busy", false);
    }, CALM);
  }
}

// Which tiles are on the page. Tiles are observed only while their section is near, because the browser
// compares each observed element with the page at every frame.

export class Sight {
  /** Calls `show(tile)` for what was drawn first. */
  constructor(show) {
    this.show = show;
    const seen = (entries) => entries.forEach(({ target, isIntersecting }) => target.tile.see(isIntersecting));
    const near = (entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) target.tile.prepare();
      this.show();
    };
    this.seen = new IntersectionObserver(seen);
    // A tile gets its body before it is on the page.
    this.near = new IntersectionObserver(near, { rootMargin: "50% 0px" });
    this.sections = new IntersectionObserver((entries) => this.moved(entries), { rootMargin: "100% 0px" });
  }

  /** Observes these sections, and no others. */
  follow(sections) {
    for (const observer of [this.sections, this.near, this.seen]) observer.disconnect();
    for (const { node, tiles } of sections) {
      node.tiles = tiles;
      this.sections.observe(node);
    }
  }

  moved(entries) {
    for (const { target, isIntersecting } of entries) {
      for (const tile of target.tiles) {
        for (const observer of [this.near, this.seen]) {
          if (isIntersecting) observer.observe(tile.node);
          else observer.unobserve(tile.node);
        }
        if (!isIntersecting) tile.see(false);
      }
    }
  }
}
