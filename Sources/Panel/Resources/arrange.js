// Settle
// SPDX-License-Identifier: Apache-2.0

// The mode in which tiles are moved within their areas, and hidden: by a finger, the mouse or the keyboard.

import { byId, h, hide, icon, redraw, say, set } from "./dom.js";
import { t } from "./words.js";

/** How near to an edge of the page, in pixels, a finger scrolls it, and how far at most in each frame. */
const EDGE = 72;
const SPEED = 14;
/** How long a tile takes to its place when it was dropped, in milliseconds. */
const GLIDE = 160;

export class Arrange {
  constructor(app) {
    this.app = app;
    this.isOn = false;
    /** The tile under the finger, and the places that it can have. */
    this.drag = null;
    this.house = byId("house");
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.done = h("button", { type: "button", class: "button primary", onclick: () => this.turn(false) }, t("done"));
    this.bar = h("p", { class: "notice", role: "status", hidden: true }, h("span", {}, t("arrangeHint")),
      h("span", { class: "keys", id: "arrange-keys" }, t("arrangeKeys")), this.done);
    byId("bar").append(this.bar);
    this.house.addEventListener("pointerdown", (event) => this.begin(event));
    const on = (name, listener) => this.house.addEventListener(name, (event) => {
      if (this.drag?.pointer === event.pointerId) listener(event);
    });
    on("pointermove", ({ clientX: x, clientY: y }) => { this.drag.at = { x, y }; });
    on("pointerup", () => this.end(true));
    on("pointercancel", () => this.end(false));
    addEventListener("keydown", (event) => this.key(event));
  }

  /** Begins or ends the mode. */
  turn(isOn) {
    this.end(false);
    this.isOn = isOn;
    this.house.toggleAttribute("data-arranging", isOn);
    hide(this.bar, !isOn);
    this.dress();
    this.app.page.showOnly(null);
    (isOn ? this.house.querySelector(".tile:not([hidden]) .tile-grip") ?? this.done : byId("open-settings")).focus({ preventScroll: true });
  }

  /** Gives each tile a handle and an eye, in place of its controls. */
  dress() {
    for (const tile of this.app.page.tiles.values()) {
      tile.node.firstElementChild.inert = this.isOn;
      if (!this.isOn) tile.tools?.node.remove();
      else this.look(tile);
    }
  }

  look(tile) {
    const { label } = tile.device;
    const isHidden = this.app.places.has("hidden", tile.device);
    const { node, grip, eye } = tile.tools ??= this.toolsFor(tile);
    if (!node.parentNode) tile.node.append(node);
    set(tile.node, "data-hidden", isHidden ? "" : null);
    set(grip, "aria-label", t("moveDevice", label));
    set(eye, "aria-label", t(isHidden ? "showDevice" : "hideDevice", label));
    redraw(eye, isHidden ? "eyeOff" : "eye");
  }

  toolsFor(tile) {
    const eye = h("button", { type: "button", class: "round tile-eye", onclick: () => this.toggle(tile) }, icon("eye"));
    const grip = h("button", {
      type: "button", class: "tile-grip", "aria-describedby": "arrange-keys", oncontextmenu: (event) => event.preventDefault(),
    }, icon("grip"));
    return { node: h("div", { class: "tile-tools" }, grip, eye), grip, eye };
  }

  /** Hides a device, or shows it again. */
  toggle(tile) {
    this.app.places.toggle("hidden", tile.device);
    this.look(tile);
    this.say(tile, t(this.app.places.has("hidden", tile.device) ? "nowHidden" : "nowShown"));
  }

  move(tile, by) {
    const { page } = this.app;
    if (!page.move(tile.device, by)) return;
    const { shown } = page.around(tile);
    this.say(tile, t("nowAt", shown.indexOf(tile) + 1, shown.length));
  }

  say(tile, text) { say(byId("announcements"), `${tile.device.label}: ${text}`); }

  key(event) {
    if (event.key === "Escape" && this.drag) return this.end(false);
    const tile = event.target.closest?.(".tile-grip") && event.target.closest(".tile").tile;
    if (!tile || event.ctrlKey || event.metaKey || event.altKey) return;
    const { span } = this.app.page.around(tile).section.place;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -span, ArrowDown: span }[event.key];
    if (by) {
      event.preventDefault();
      this.move(tile, by);
      tile.node.scrollIntoView({ block: "nearest" });
    } else if (/^(delete|h)$/i.test(event.key)) this.toggle(tile);
  }

  // A drag. The tiles stay where they are in the page until it ends, and only look moved.

  begin(event) {
    const tile = event.target.closest(".tile")?.tile;
    if (!this.isOn || this.drag || !tile || event.button !== 0 || event.target.closest(".tile-eye")) return;
    // A touch beside the handle scrolls the page.
    if (event.pointerType === "touch" && !event.target.closest(".tile-grip")) return;
    const { section, shown } = this.app.page.around(tile);
    const slots = shown.map(({ node }) => ({ x: node.offsetLeft, y: node.offsetTop }));
    const place = shown.indexOf(tile);
    const at = { x: event.clientX, y: event.clientY };
    const start = { x: at.x, y: at.y + scrollY };
    this.drag = { pointer: event.pointerId, tile, section, shown, slots, from: place, to: place, at, start };
    tile.node.setPointerCapture(event.pointerId);
    for (const node of [section.node, tile.node]) node.toggleAttribute("data-dragging", true);
    this.follow();
  }

  /** Moves the tile with the finger, once per frame. */
  follow() {
    const { drag } = this;
    if (!drag) return;
    this.scroll(drag);
    const { slots, from, at, start } = drag;
    const within = (axis, by) => {
      const all = slots.map((slot) => slot[axis]);
      return Math.min(Math.max(slots[from][axis] + by, Math.min(...all)), Math.max(...all));
    };
    const here = { x: within("x", at.x - start.x), y: within("y", at.y + scrollY - start.y) };
    const far = slots.map(({ x, y }) => Math.hypot(x - here.x, y - here.y));
    drag.to = far.indexOf(Math.min(...far));
    this.place(drag, here);
    requestAnimationFrame(() => this.follow());
  }

  /** Shows the tile where the finger is, and the others where they would be. */
  place({ tile, shown, slots, from, to }, here) {
    shown.forEach(({ node }, place) => {
      const by = place > from && place <= to ? -1 : place < from && place >= to ? 1 : 0;
      const { x, y } = node === tile.node ? here : slots[place + by];
      const translate = `${x - slots[place].x}px ${y - slots[place].y}px`;
      if (node.style.translate !== translate) node.style.translate = translate;
    });
  }

  /** Near an edge, the page goes on as far as the area does. */
  scroll({ section, at }) {
    const upper = byId("bar").getBoundingClientRect().bottom;
    const { top, bottom } = section.node.getBoundingClientRect();
    const over = Math.min(0, at.y - upper - EDGE) + Math.max(0, at.y - innerHeight + EDGE);
    if (over < 0 ? top < upper : bottom > innerHeight) scrollBy(0, Math.max(-SPEED, Math.min(SPEED, over / 4)));
  }

  /** Ends a drag: the tile stays where it is, or goes back. */
  end(isDropped) {
    const { drag } = this;
    if (!drag) return;
    this.drag = null;
    const { tile, section, shown, from, to } = drag;
    const before = tile.node.getBoundingClientRect();
    for (const node of [section.node, tile.node]) node.removeAttribute("data-dragging");
    for (const { node } of shown) node.style.translate = "";
    if (isDropped && to !== from) this.move(tile, to - from);
    if (this.still.matches) return;
    const after = tile.node.getBoundingClientRect();
    tile.node.animate({ translate: [`${before.x - after.x}px ${before.y - after.y}px`, "0 0"] }, { duration: GLIDE, easing: "ease-out" });
  }
}
