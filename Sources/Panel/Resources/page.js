// Settle
// SPDX-License-Identifier: Apache-2.0

// The tiles of the house, by area: what is shown of them, in which order, and the address of each.

import { byId, h, hide, say, set, Sight } from "./dom.js";
import { FADE, slugOf } from "./house.js";
import { Mark } from "./mark.js";
import { TileView } from "./tiles.js";
import { folded, readable } from "./values.js";
import { t } from "./words.js";

/** The least width and height of a tile with its gap, in pixels. */
const LEAST = { width: 170, height: 118 };
const OPEN = new Set(["settling", "waiting", "unsent"]);

export class Page {
  constructor(app) {
    this.app = app;
    this.tiles = new Map();
    /** The scenes, by the names that they have in the outbox. */
    this.scenes = new Map();
    this.sections = [];
    this.text = "";
    this.words = [];
    this.only = null;
    this.kept = new Set();
    this.area = null;
    this.house = byId("house");
    this.sight = new Sight(() => this.drawn());
    this.width = 0;
    new ResizeObserver(() => { if (this.house.clientWidth !== this.width) this.spread(); }).observe(this.house);
  }

  tileOf(device) { return this.tiles.get(device) ?? null; }

  /** For tests: when the first tiles were on the screen. */
  drawn() {
    if (!this.app.drawnAt) requestAnimationFrame(() => setTimeout(() => { this.app.drawnAt ||= performance.now(); }));
  }

  /** Puts the tiles into their sections; a tile of the same device stays, with its focus. */
  build() {
    const { arrange, house } = this.app;
    arrange.end(false);
    const focused = document.activeElement;
    const old = this.tiles;
    this.tiles = new Map(house.devices.map((device) => [device, old.get(device) ?? new TileView(device, this.app)]));
    for (const [device, tile] of old) if (!this.tiles.has(device)) tile.see(false);
    this.sections = this.app.places.sections(house.devices).map(({ name, slug, devices }) => {
      const tiles = devices.map((device) => this.tiles.get(device));
      for (const tile of tiles) tile.call(slug === "favourites");
      const id = `area-${slug}`;
      const node = h("section", { class: "area", "aria-labelledby": id }, h("h2", { id, dir: "auto" }, name), ...tiles.map((tile) => tile.node));
      return { name, slug, tiles, node };
    });
    byId("scenes").replaceChildren(...this.sceneSection(house.scenes));
    this.house.replaceChildren(...this.sections.map((section) => section.node));
    byId("areas").replaceChildren(...this.areaLinks());
    if (arrange.isOn) arrange.dress();
    const sheetDevice = this.app.sheet?.device;
    if (sheetDevice && !this.tiles.has(sheetDevice)) this.reopen(sheetDevice);
    this.filter();
    // Those that may be on the first page at once, the others when they come near.
    const most = Math.ceil(innerWidth / LEAST.width) * Math.floor(innerHeight / LEAST.height);
    if (old.size === 0) for (const tile of this.sections.flatMap((section) => section.tiles).slice(0, most)) tile.prepare();
    this.sight.follow(this.sections);
    if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  }

  /** The configuration has changed: shows the same device as it is now, if it still exists. */
  reopen(device) {
    const now = this.app.house.devices.find((other) => other.id === device.id);
    if (now) this.app.sheet.open(now);
    else this.app.sheet.dialog.close();
  }

  sceneSection(scenes) {
    const old = this.scenes;
    this.scenes = new Map(scenes.map((scene) => [`scene:${scene.id}`, old.get(`scene:${scene.id}`) ?? new SceneView(scene, this.app)]));
    if (scenes.length === 0) return [];
    return [h("section", { class: "area scenes", "aria-labelledby": "area-scenes" }, h("h2", { id: "area-scenes" }, t("scenes")),
      h("div", { class: "scene-row" }, ...[...this.scenes.values()].map((scene) => scene.node)))];
  }

  areaLinks() {
    if (this.sections.length < 2) return [];
    return [["", t("home")], ...this.sections.map(({ slug, name }) => [slug, name])]
      .map(([slug, name]) => h("a", { class: "area-link", href: `#${encodeURIComponent(slug)}`, "data-slug": slug, dir: "auto" }, name));
  }

  // What is shown

  search(text) {
    this.text = text.trim();
    this.words = folded(this.text).split(/\s+/).filter((word) => word);
    this.filter();
  }

  showOnly(only) {
    this.only = only;
    this.kept = new Set();
    this.filter();
    this.app.bar.countedAt = 0;
    this.app.bar.update();
  }

  belongs(tile) {
    if (this.only === null || this.kept.has(tile)) return true;
    if (this.only === "offline") return !tile.device.online;
    const sum = this.app.bar.sums.get(this.only);
    if (sum) return sum.devices.has(tile.device);
    if (this.only === "added") return this.app.bar.added.has(tile.device.id);
    return tile.device.keys.some((key) => {
      const name = this.app.progress.get(key);
      return this.only === "failed" ? name === "failed" : OPEN.has(name);
    });
  }

  /** Whether a tile is hidden: not while tiles are arranged, not from who searches or filters, and not if it is needed. */
  isAway(tile) {
    if (!this.app.places.has("hidden", tile.device) || this.app.arrange.isOn) return false;
    return this.words.length === 0 && this.only === null && !tile.isNeeded;
  }

  /** Shows hidden tiles that are needed now, until they are not. */
  look(tiles) {
    if (tiles.some((tile) => this.isAway(tile) !== tile.isAway)) this.filter();
  }

  filter() {
    let count = 0;
    const isAreaShown = this.words.length === 0 && this.only === null && this.sections.some((section) => section.slug === this.area);
    for (const section of this.sections) {
      let shown = 0;
      for (const tile of section.tiles) {
        tile.isAway = this.isAway(tile);
        const isShown = !tile.isAway && (!isAreaShown || section.slug === this.area) && tile.matches(this.words) && this.belongs(tile);
        tile.node.hidden = !isShown;
        // A shown tile stays until the filter changes, so that none vanishes under the pointer.
        if (isShown && this.only !== null) this.kept.add(tile);
        if (isShown) shown += 1;
      }
      section.node.hidden = shown === 0;
      section.shown = shown;
      count += shown;
    }
    byId("scenes").hidden = this.words.length > 0 || this.only !== null || isAreaShown;
    for (const link of byId("areas").children) {
      const { slug } = link.dataset;
      set(link, "aria-current", slug === (isAreaShown ? this.area : "") ? "page" : null);
      hide(link, Boolean(this.sections.find((section) => section.slug === slug)?.tiles.every((tile) => tile.isAway)));
    }
    const empty = byId("empty");
    empty.hidden = count > 0 || !this.app.isLoaded && this.tiles.size > 0;
    if (count === 0) say(empty, this.tiles.size === 0 ? t("noDevices") : this.words.length > 0 ? t("nothingCalled", this.text) : t("nothing"));
    this.spread();
  }

  spread() {
    this.layOut();
    this.app.wall?.fit();
  }

  /** Puts sections side by side where they fit. */
  layOut() {
    this.width = this.house.clientWidth;
    // Spans that are too wide would add columns of their own.
    this.house.toggleAttribute("data-measured", true);
    const columns = getComputedStyle(this.house).gridTemplateColumns.split(" ").length;
    this.house.toggleAttribute("data-measured", false);
    const shown = this.sections.filter((section) => section.shown > 0);
    placesOf(shown.map((section) => section.shown), columns).forEach((place, at) => {
      const { style } = shown[at].node;
      shown[at].place = place;
      for (const [name, value] of Object.entries(place)) {
        if (style.getPropertyValue(`--${name}`) !== String(value)) style.setProperty(`--${name}`, value);
      }
    });
  }

  /** The section of a tile, and the tiles that are shown in it. */
  around(tile) {
    const section = this.sections.find((one) => one.tiles.includes(tile));
    return { section, shown: section.tiles.filter((one) => one === tile || !one.node.hidden) };
  }

  /** Moves a device by so many places among those that are shown with it; whether there was such a place. */
  move(device, by) {
    const tile = this.tileOf(device);
    const { section, shown } = this.around(tile);
    const other = shown[shown.indexOf(tile) + by];
    if (!other) return false;
    this.app.places.move(device, other.device, section.tiles.map((one) => one.device));
    this.build();
    return true;
  }

  // Addresses: #kitchen, #kitchen/desk-lamp

  addressOf(device) { return `#${encodeURIComponent(device.area ? slugOf(device.area) : "devices")}/${encodeURIComponent(device.id)}`; }

  route() {
    const [slug = "", id] = location.hash.slice(1).split("/").map(decoded);
    const device = id === undefined ? null : this.app.house.devices.find((other) => other.id === id);
    if (device) return this.app.sheet.open(device);
    if (this.app.sheet.dialog.open) this.app.sheet.dialog.close();
    if (id !== undefined) return;
    this.area = slug === "" ? null : slug;
    this.filter();
  }

  open(device) {
    history.pushState({ isSheet: true }, "", this.addressOf(device));
    this.app.sheet.open(device);
    // What the search has found comes first.
    const found = this.words.length > 0 ? this.tileOf(device)?.found(this.words) : null;
    if (found) this.app.sheet.point(found);
  }

  sheetClosed() {
    const address = this.area === null ? location.pathname + location.search : `#${encodeURIComponent(this.area)}`;
    if (history.state?.isSheet) history.back();
    else if (location.hash.includes("/")) history.replaceState(null, "", address);
  }
}

/** A part of an address; as it is if it is not encoded. */
function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

// The button of a scene, and what became of its newest press.

class SceneView {
  constructor({ id, name }, app) {
    this.app = app;
    this.name = name ?? readable(id);
    this.newest = null;
    this.unsent = false;
    /** "sending", "done" or "failed"; null once it has faded. */
    this.state = null;
    this.mark = new Mark();
    this.note = h("span", { class: "scene-note", hidden: true });
    this.node = h("button", { type: "button", class: "button scene", onclick: () => app.link.outbox.setScene(id) },
      this.mark.node, h("span", {}, h("span", { dir: "auto" }, this.name), this.note));
    this.draw();
  }

  sent(id) {
    this.newest = id;
    this.unsent = false;
    this.show("sending");
  }

  arrived(id) {
    if (id !== this.newest) return;
    this.unsent = false;
    this.show("done");
  }

  refused(id, reason) {
    if (id === this.newest) this.show("failed", reason);
    this.app.alert(`${this.name}: ${t("failedBy", reason)}`);
  }

  show(state, reason = "") {
    this.state = state;
    this.reason = reason;
    clearTimeout(this.timer);
    if (state === "sending") return;
    this.timer = setTimeout(() => {
      this.state = null;
      this.draw();
    }, FADE);
  }

  draw() {
    const name = this.state === "sending" && this.unsent ? "unsent" : this.state ?? "idle";
    set(this.node, "data-progress", name);
    this.mark.show({ name });
    hide(this.mark.node, name === "idle");
    const text = name === "failed" ? t("failedBy", this.reason) : name === "unsent" ? t("unsent") : "";
    say(this.note, text);
    hide(this.note, text === "");
  }
}

// Where sections go. It uses no DOM.

/** The height of a section's head, in rows of tiles. */
const HEAD = 0.35;

/**
 * Where each section that has so many tiles is, in columns: `{ from, span, rows }`. All tiles have one width. Small
 * sections are beside each other, in their order; the page is as short as possible.
 */
export function placesOf(counts, columns) {
  // From the end: the height of the page from each section on, and which sections are beside it.
  const best = [];
  best[counts.length] = { height: 0 };
  for (let first = counts.length - 1; first >= 0; first -= 1) {
    for (let end = first + 1; end <= Math.min(counts.length, first + columns); end += 1) {
      const beside = counts.slice(first, end);
      let rows = 1;
      while (beside.reduce((sum, count) => sum + Math.ceil(count / rows), 0) > columns) rows += 1;
      // Columns of many rows side by side are hard to read.
      if (beside.length > 1 && rows > (columns > 3 ? 2 : 1)) break;
      const height = HEAD + rows + best[end].height;
      if (!best[first] || height < best[first].height - 1e-9) best[first] = { height, rows, end };
    }
  }
  const places = [];
  for (let first = 0; first < counts.length; first = best[first].end) {
    let from = 1;
    const beside = counts.slice(first, best[first].end);
    for (const count of beside) {
      const span = beside.length > 1 ? Math.ceil(count / best[first].rows) : Math.min(count, columns);
      places.push({ from, span, rows: Math.ceil(count / span) });
      from += span;
    }
  }
  return places;
}
