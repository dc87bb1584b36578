// Settle
// SPDX-License-Identifier: Apache-2.0

// A display on the wall, at `?kiosk`: a clock, pages that fit the screen, the way home, the night, and a picture that moves.

import { byId, h, say, set } from "./dom.js";
import { locale } from "./words.js";

/** After this time without a touch, in milliseconds, the display goes home, and darkens at night. */
const IDLE = 60_000;
/** The hours of the night, in local time: from the first, and before the second. */
const NIGHT = [22, 6];
/** The least size of a rem, in pixels: the texts beside the figures are legible. */
const LEAST = 16;
/** How much higher than usual tiles may be, to fill the screen. */
const STRETCH = 1.5;
/** A finger that moves further sideways than this, in pixels, turns the page. */
const SWIPE = 60;
/** Where the picture is, in pixels: every five minutes at the next place. */
const PLACES = [[0, 0], [3, 1], [3, 3], [0, 3], [-3, 3], [-3, 0], [-3, -3], [0, -3], [3, -3]];
const MOVE = 300_000;
/** How long after a touch a browser may make a click of it, in milliseconds. */
const AFTER = 400;

const root = document.documentElement;

export class Wall {
  constructor(app) {
    this.app = app;
    this.pages = [];
    this.at = 0;
    this.pointers = new Set();
    this.isResting = false;
    /** The devices that report a leak, smoke and the like, and whether nobody has touched the display since. */
    this.alarms = new Set();
    this.isAlarmed = false;
    this.clock = h("time", { class: "wall-clock" });
    this.cover = h("div", { class: "wall-night", hidden: true });
    root.dataset.kiosk = "";
    byId("bar").firstElementChild.prepend(this.clock);
    document.body.append(this.cover);
    new ResizeObserver(() => this.fit()).observe(byId("house"));
    this.listen();
    this.tick();
    this.touched();
    stayAwake();
    this.see([...app.bar.sums.values()]);
    app.page.spread();
  }

  listen() {
    const on = (name, listener) => addEventListener(name, listener, true);
    on("pointerdown", (event) => this.pressed(event));
    on("pointermove", () => { if (this.cover.hidden) this.touched(); });
    for (const name of ["pointerup", "pointercancel"]) on(name, (event) => this.lifted(event));
    on("click", (event) => { if (this.isSwiped) stop(event); });
    on("keydown", (event) => this.key(event));
    on("keyup", (event) => { if (!this.cover.hidden) this.endNight(event); });
    on("input", () => this.touched());
    // The touch that ends the night does nothing else, nor does what a browser makes of it.
    for (const name of ["pointerdown", "touchstart", "mousedown", "wheel", "contextmenu"]) this.cover.addEventListener(name, (event) => event.preventDefault());
    this.cover.addEventListener("click", (event) => this.endNight(event));
    document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") this.tick(); });
  }

  // The clock, once a minute; and what goes by it

  tick() {
    clearTimeout(this.tickTimer);
    const now = new Date();
    say(this.clock, new Intl.DateTimeFormat(locale, { hour: "numeric", minute: "2-digit" }).format(now));
    const [x, y] = PLACES[Math.floor(now / MOVE) % PLACES.length];
    document.body.style.translate = `${x}px ${y}px`;
    if (this.isResting) this.dim();
    // A little after the minute, so that no timer comes too early.
    this.tickTimer = setTimeout(() => this.tick(), 60_050 - (now % 60_000));
  }

  // Pages

  /** Puts the sections on pages that fit the screen: on one in smaller type, if that is legible. */
  fit() {
    const { page } = this.app;
    const sections = page.sections.filter((section) => section.shown > 0);
    if (sections.length === 0) return this.show();
    for (const node of [sections[0].node, ...sections[0].tiles.map((tile) => tile.node)]) node.removeAttribute("data-elsewhere");
    root.style.removeProperty("--rem");
    const usual = parseFloat(getComputedStyle(root).fontSize);
    let parts = this.measure(sections, usual);
    for (let size = usual, turns = 0; heightOf(parts) > this.room && turns < 4; turns += 1) {
      size *= Math.min(0.98, this.room / heightOf(parts));
      if (size < LEAST) break;
      parts = this.measure(sections, size);
    }
    if (heightOf(parts) > this.room) parts = this.measure(sections, usual);
    this.pages = pagesOf(parts, this.room);
    this.show();
  }

  /** The rows of the house in a size of type, those of sections side by side together, with the height of each. */
  measure(sections, size) {
    const { page } = this.app;
    root.style.setProperty("--rem", `${size}px`);
    page.layOut();
    page.house.style.removeProperty("--tall");
    const { node, tiles } = sections[0];
    const { rowGap, paddingBottom } = getComputedStyle(node);
    const gap = parseFloat(rowGap);
    this.tall = tiles.find((tile) => !tile.node.hidden).node.offsetHeight;
    const head = node.firstElementChild.offsetHeight + gap + parseFloat(paddingBottom);
    this.room = page.house.clientHeight;
    const most = Math.max(1, Math.floor((this.room - head) / (this.tall + gap)));
    const parts = [];
    for (const band of bandsOf(sections)) {
      const rows = Math.max(...band.map((section) => section.place.rows));
      // What is too high for one page is on several.
      const count = Math.ceil(rows / most);
      const each = Math.ceil(rows / count);
      for (let from = 0; from < rows; from += each) {
        const some = Math.min(each, rows - from);
        const here = band.filter((section) => section.place.rows > from);
        parts.push({ from, rows: some, band: here, number: from / each, height: head + some * (this.tall + gap) });
      }
    }
    return parts;
  }

  turn(to) {
    if (to < 0 || to >= this.pages.length) return;
    this.at = to;
    this.show();
  }

  /** Shows the tiles of this page, and a button for each. */
  show() {
    const { page } = this.app;
    this.at = Math.min(this.at, Math.max(0, this.pages.length - 1));
    const parts = this.pages[this.at] ?? [];
    const here = new Set();
    for (const { band, from, rows } of parts) {
      for (const { node, tiles, place } of band) {
        here.add(node);
        for (const tile of tiles.filter((one) => !one.node.hidden).slice(from * place.span, (from + rows) * place.span)) here.add(tile.node);
      }
    }
    const rows = parts.reduce((sum, part) => sum + part.rows, 0);
    if (rows > 0) page.house.style.setProperty("--tall", `${Math.min(this.tall * STRETCH, this.tall + (this.room - heightOf(parts)) / rows)}px`);
    for (const { node, tiles } of page.sections) {
      for (const one of [node, ...tiles.map((tile) => tile.node)]) set(one, "data-elsewhere", here.has(one) ? null : "");
      for (const tile of tiles) if (here.has(tile.node)) tile.prepare();
    }
    this.showButtons();
  }

  showButtons() {
    const areas = byId("areas");
    const names = this.pages.length < 2 ? [] : this.pages.map((parts) => parts
      .flatMap(({ band, number }) => band.map(({ name }) => (number > 0 ? `${name} ${number + 1}` : name))).join(" · "));
    if (names.join("\n") !== [...areas.children].map((node) => node.textContent).join("\n") || areas.querySelector("a")) {
      areas.replaceChildren(...names.map((name, at) => h("button", { type: "button", class: "area-link", dir: "auto", onclick: () => this.turn(at) }, name)));
    }
    [...areas.children].forEach((button, at) => set(button, "aria-current", at === this.at ? "page" : null));
    areas.children[this.at]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // Fingers and keys

  pressed(event) {
    this.touched();
    this.isAlarmed = false;
    // A finger that was lifted elsewhere is forgotten.
    if (event.isPrimary) this.pointers.clear();
    this.pointers.add(event.pointerId);
    this.isSwiped = false;
    if (event.target === this.cover) this.cover.dataset.over = "";
    const isElsewhere = event.target.closest(".range, .sums, .scene-row, .shelf, dialog, .wall-night");
    this.start = isElsewhere || this.pointers.size > 1 ? null : { x: event.clientX, y: event.clientY };
  }

  lifted(event) {
    this.touched();
    this.pointers.delete(event.pointerId);
    if (event.target === this.cover) setTimeout(() => this.endNight(), AFTER);
    if (!this.start || event.type === "pointercancel") return;
    const [x, y] = [event.clientX - this.start.x, event.clientY - this.start.y];
    this.start = null;
    if (Math.abs(x) < SWIPE || Math.abs(x) < 2 * Math.abs(y)) return;
    this.turn(this.at + (x < 0 ? 1 : -1));
    // It presses nothing.
    this.isSwiped = true;
    setTimeout(() => { this.isSwiped = false; }, AFTER);
  }

  key(event) {
    this.touched();
    this.isAlarmed = false;
    if (!this.cover.hidden) {
      this.cover.dataset.over = "";
      return stop(event);
    }
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by && !event.target.closest("input, select, dialog")) this.turn(this.at + by);
  }

  // Rest

  touched() {
    this.isResting = false;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.rest(), IDLE);
  }

  /** Goes home, unless something is half done: the touch that ends it begins the wait again. */
  rest() {
    if (this.pointers.size > 0 || document.querySelector("[data-typed]") || [...this.app.house.keys.values()].some((key) => key.held)) return;
    this.isResting = true;
    for (const dialog of document.querySelectorAll("dialog[open]:not(#login)")) dialog.close();
    if (this.app.page.only !== null) this.app.page.showOnly(null);
    this.turn(0);
    this.dim();
  }

  /** Darkens the display at night, and lights it in the morning. */
  dim() {
    const hour = new Date().getHours();
    if ((hour < NIGHT[0] && hour >= NIGHT[1]) || this.isAlarmed) return this.endNight();
    // Over the question for the token as well.
    (document.querySelector("dialog[open]") ?? document.body).append(this.cover);
    this.cover.hidden = false;
  }

  endNight(event) {
    if (event) stop(event);
    this.cover.hidden = true;
    delete this.cover.dataset.over;
  }

  /** Something failed: the display is light for a while. */
  wake() {
    if (!this.isResting) return;
    this.touched();
    this.endNight();
  }

  /** Wakes the display for a new alarm, until somebody touches it. */
  see(sums) {
    const before = this.alarms;
    this.alarms = new Set(sums.filter((sum) => sum.notice === "alarm").flatMap((sum) => [...sum.devices]));
    if (this.alarms.size === 0) this.isAlarmed = false;
    if ([...this.alarms].every((device) => before.has(device))) return;
    this.wake();
    this.isAlarmed = true;
  }
}

function stop(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

/** Keeps the screen on, where the browser allows it: over HTTPS and at localhost. */
async function stayAwake() {
  if (!navigator.wakeLock) return;
  const request = () => navigator.wakeLock.request("screen").catch(() => {});
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") request(); });
  await request();
}

// What is on which page.

function heightOf(parts) { return parts.reduce((sum, part) => sum + part.height, 0); }

/** The sections that are side by side, together. */
function bandsOf(sections) {
  const bands = [];
  for (const section of sections) {
    if (section.place.from === 1) bands.push([]);
    bands.at(-1).push(section);
  }
  return bands;
}

/** Parts in their order on as few pages as possible, the first ones full. */
function pagesOf(parts, room) {
  const pages = [];
  for (const part of parts) {
    if (pages.length === 0 || heightOf(pages.at(-1)) + part.height > room) pages.push([]);
    pages.at(-1).push(part);
  }
  return pages;
}
