// Settle
// SPDX-License-Identifier: Apache-2.0

// The choices of this browser: theme, language, wall display, and signing in another device.

import { h, icon, svg } from "./dom.js";
import { counted, duration } from "./values.js";
import { LANGUAGES, t } from "./words.js";

export class Settings {
  constructor(dialog, app, choices) {
    this.dialog = dialog;
    this.app = app;
    this.choices = choices;
    dialog.append(h("h2", { id: "settings-title" }, t("settings")));
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }

  open() {
    const { choices, dialog, app } = this;
    const select = (name, label, entries, change) => h("label", { class: "setting" }, h("span", {}, label),
      h("select", { class: "field", onchange: (event) => change(event.target.value) },
        ...entries.map(([value, text]) => h("option", { value, selected: value === (choices.get(name, "auto")) }, text))));
    const languageName = (tag) => new Intl.DisplayNames([tag], { type: "language" }).of(tag);
    const parts = [
      h("div", { class: "sheet-head" }, h("h2", { id: "settings-title" }, t("settings")),
        h("button", { type: "button", class: "round", "aria-label": t("close"), onclick: () => dialog.close() }, icon("close"))),
      select("theme", t("theme"), [["auto", t("auto")], ["light", t("light")], ["dark", t("dark")]], (theme) => {
        choices.set("theme", theme);
        showTheme(theme);
      }),
      select("language", t("language"), [["auto", t("auto")], ...LANGUAGES.map((tag) => [tag, languageName(tag)])], (tag) => {
        choices.set("language", tag);
        location.reload();
      }),
      h("p", { class: "setting" }, h("a", { class: "button", href: "?kiosk" }, t("kiosk")), h("span", { class: "quiet" }, t("kioskHint"))),
      h("p", { class: "setting" }, h("button", { type: "button", class: "button", onclick: () => this.arrange() }, t("arrange")), h("span", { class: "quiet" }, t("arrangeNote"))),
    ];
    if (!app.shared.isKept) parts.push(h("p", { class: "setting quiet" }, t("sharedInMemory")));
    if (app.link.token !== null) parts.push(this.share(app.link.token));
    dialog.showModal();
    dialog.replaceChildren(h("div", { class: "sheet-inner" }, ...parts, app.log.section(), lanesSection(app.link, dialog), importSection(app.link)));
  }

  arrange() {
    this.dialog.close();
    this.app.arrange.turn(true);
  }

  /** A code that another device scans to sign in. */
  share(token) {
    const address = addressFor(location, token);
    const parts = address ? [h("p", { class: "quiet" }, t("shareHint")), qrSymbol(address, t("share"))] : [h("p", { class: "quiet" }, t("shareLocal"))];
    return h("details", { class: "setting share" }, h("summary", {}, t("share")), ...parts);
  }
}

/** The address at which another device signs in; null where the page's own leads every device to itself. */
export function addressFor({ origin, hostname, pathname }, token) {
  if (/^(localhost|.*\.localhost|127\.[\d.]+|\[::1\])$/.test(hostname)) return null;
  return `${origin}${pathname}#token=${encodeURIComponent(token)}`;
}

/** Sets the theme: light, dark, or that of the system. */
export function showTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

// The lanes: how many commands each may have in flight, and what the gateway learned about its mesh.

const EVERY = 2000;

/** A section that follows the lanes while `dialog` is open; nothing where no lane has a rate or a window. */
function lanesSection(link, dialog) {
  const body = h("tbody");
  const names = ["lane", "laneWaiting", "laneWindow", "laneRate", "laneRoundTrip", "laneLost"];
  const section = h("section", { class: "setting lanes", hidden: true }, h("h3", {}, t("lanes")),
    h("table", {}, h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, t(name))))), body));
  const follow = async () => {
    let isOver = false;
    try {
      const lanes = ((await link.get("v1/status")).queue?.lanes ?? []).filter((lane) => lane.rate !== null || lane.window);
      body.replaceChildren(...lanes.map(row));
      section.hidden = lanes.length === 0;
      // The gateway counts all of its keys for an answer: without lanes it is asked once.
      isOver = lanes.length === 0;
    } catch {
      // The connection's state is shown in the bar; the last figures stay.
    }
    // A dialog that was opened again has a section of its own.
    if (!isOver && dialog.open && section.isConnected) setTimeout(follow, EVERY);
  };
  follow();
  return section;
}

function row({ name, rate, waiting, in_flight: inFlight, window }) {
  const cell = (text) => h("td", {}, text);
  return h("tr", {}, h("th", { scope: "row", dir: "auto" }, name), cell(counted(waiting)),
    cell(window ? t("laneUse", counted(window.in_use), counted(window.size)) : counted(inFlight)),
    cell(rate === null ? "–" : t("perSecond", counted(rate))),
    cell(window?.round_trip_ms == null ? "–" : duration(window.round_trip_ms)),
    cell(window ? counted(window.lost) : "–"));
}

/** What the gateway has imported and refused; nothing where it imports nothing. */
function importSection(link) {
  const section = h("section", { class: "setting", hidden: true }, h("h3", {}, t("imported")));
  const show = async () => {
    try {
      const facts = (await link.get("v1/status")).import;
      if (!facts) return;
      const gone = facts.gone_count > 0 ? t("goneDevices", facts.gone.join(", ")) : "";
      const lines = [t("importedCount", facts.devices), facts.failure, facts.unused, facts.added.slice(0, 10).join(", "), gone];
      section.append(...lines.filter((line) => line).map((line) => h("p", { dir: "auto" }, line)));
      section.append(...facts.refused.map(({ subject, reason }) => h("p", { class: "quiet", dir: "auto" }, `${subject}: ${reason}`)));
      section.hidden = false;
    } catch {
      // The connection's state is shown in the bar.
    }
  };
  show();
  return section;
}

// After an upgrade of the gateway the page loads itself again.

/** How long a page waits that is used at the moment. */
const LATER = 2000;

/** Looks whether the gateway has other files than at the first look: the page's tag covers them all. */
export async function followUpgrades(panel) {
  const { dataset } = document.documentElement;
  try {
    const tag = (await fetch(location.pathname, { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(5000) })).headers.get("ETag");
    if (dataset.version && tag !== dataset.version) renew(panel);
    else if (tag) dataset.version = tag;
  } catch {
    // The next connection asks again.
  }
}

function renew(panel) {
  if (panel.isIdle) location.reload();
  else setTimeout(() => renew(panel), LATER);
}

// A QR code of a short text (ISO/IEC 18004): bytes, the lowest error correction, versions 1 to 9, mask 0.

/** For each version: data codewords of a block, error correction codewords of a block, blocks, alignment. */
const VERSIONS = [
  [19, 7, 1, []], [34, 10, 1, [6, 18]], [55, 15, 1, [6, 22]], [80, 20, 1, [6, 26]], [108, 26, 1, [6, 30]],
  [68, 18, 2, [6, 34]], [78, 20, 2, [6, 22, 38]], [97, 24, 2, [6, 24, 42]], [116, 30, 2, [6, 26, 46]],
];

/** The rows of dark modules; null if the text is too long. */
export function qrRows(text) {
  const bytes = [...new TextEncoder().encode(text)];
  const version = VERSIONS.findIndex(([size, , blocks]) => bytes.length + 2 <= size * blocks) + 1;
  if (version === 0) return null;
  const [size, check, blocks, alignment] = VERSIONS[version - 1];
  const width = 17 + 4 * version;
  const dark = Array.from({ length: width }, () => Array(width).fill(false));
  const fixed = Array.from({ length: width }, () => Array(width).fill(false));
  const put = (x, y, isDark) => {
    if (x < 0 || y < 0 || x >= width || y >= width) return;
    dark[y][x] = isDark;
    fixed[y][x] = true;
  };
  drawPatterns(put, width, alignment);
  drawNumbers(put, width, version);
  const words = interleaved(codewords(bytes, size * blocks), size, check, blocks);
  drawWords(words, dark, fixed, width);
  return dark;
}

function drawPatterns(put, width, alignment) {
  for (let at = 0; at < width; at += 1) {
    put(6, at, at % 2 === 0);
    put(at, 6, at % 2 === 0);
  }
  const square = (cx, cy, radius, ring) => {
    for (let y = -radius; y <= radius; y += 1) {
      for (let x = -radius; x <= radius; x += 1) put(cx + x, cy + y, Math.max(Math.abs(x), Math.abs(y)) !== ring[0] && Math.max(Math.abs(x), Math.abs(y)) !== ring[1]);
    }
  };
  for (const [cx, cy] of [[3, 3], [width - 4, 3], [3, width - 4]]) square(cx, cy, 4, [2, 4]);
  const last = alignment.at(-1);
  for (const cx of alignment) {
    for (const cy of alignment) {
      const isCorner = (cx === 6 && (cy === 6 || cy === last)) || (cx === last && cy === 6);
      if (!isCorner) square(cx, cy, 2, [1, -1]);
    }
  }
  put(8, width - 8, true);
}

/** The format, here always the lowest error correction and mask 0, and the version. */
function drawNumbers(put, width, version) {
  const format = 0b111011111000100;
  const bit = (place) => ((format >> place) & 1) === 1;
  for (let place = 0; place < 15; place += 1) {
    const [x, y] = place < 6 ? [8, place] : place < 8 ? [8, place + 1] : place === 8 ? [7, 8] : [14 - place, 8];
    put(x, y, bit(place));
    if (place < 8) put(width - 1 - place, 8, bit(place));
    else put(8, width - 15 + place, bit(place));
  }
  if (version < 7) return;
  let rest = version << 12;
  for (let place = 17; place >= 12; place -= 1) if ((rest >> place) & 1) rest ^= 0x1f25 << (place - 12);
  const number = (version << 12) | rest;
  for (let place = 0; place < 18; place += 1) {
    const isDark = ((number >> place) & 1) === 1;
    put(width - 11 + (place % 3), Math.floor(place / 3), isDark);
    put(Math.floor(place / 3), width - 11 + (place % 3), isDark);
  }
}

function codewords(bytes, count) {
  const words = [0x40 | (bytes.length >> 4), ((bytes.length & 15) << 4)];
  for (const byte of bytes) {
    words[words.length - 1] |= byte >> 4;
    words.push((byte & 15) << 4);
  }
  for (let filler = 0xec; words.length < count; filler ^= 0xec ^ 0x11) words.push(filler);
  return words;
}

function interleaved(words, size, check, blocks) {
  const parts = Array.from({ length: blocks }, (_, place) => words.slice(place * size, (place + 1) * size));
  const checks = parts.map((part) => remainder(part, check));
  const woven = (lists) => lists[0].flatMap((_, place) => lists.map((list) => list[place]));
  return [...woven(parts), ...woven(checks)];
}

/** The Reed-Solomon check words over the field of 256 elements with the polynomial 0x11d. */
function remainder(words, count) {
  const product = (a, b) => {
    let result = 0;
    for (let place = 7; place >= 0; place -= 1) result = ((result << 1) ^ ((result >> 7) * 0x11d)) ^ (((b >> place) & 1) * a);
    return result & 255;
  };
  let divisor = [1];
  for (let place = 0, root = 1; place < count; place += 1, root = product(root, 2)) {
    const shifted = [...divisor, 0];
    divisor.forEach((factor, at) => { shifted[at + 1] ^= product(factor, root); });
    divisor = shifted;
  }
  const rest = [...words, ...Array(count).fill(0)];
  for (let at = 0; at < words.length; at += 1) {
    const factor = rest[at];
    divisor.forEach((own, place) => { rest[at + place] ^= product(own, factor); });
  }
  return rest.slice(words.length);
}

/** Writes the bits in pairs of columns, from the right, up and down in turn. */
function drawWords(words, dark, fixed, width) {
  let place = 0;
  for (let right = width - 1; right > 0; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < width; step += 1) {
      const isUp = ((right + 1) & 2) === 0;
      const y = isUp ? width - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (fixed[y][x]) continue;
        const bit = place < words.length * 8 ? (words[place >> 3] >> (7 - (place & 7))) & 1 : 0;
        dark[y][x] = (bit ^ ((x + y) % 2 === 0 ? 1 : 0)) === 1;
        place += 1;
      }
    }
  }
}

/** The code as a picture; an empty text if it is too long. */
export function qrSymbol(text, label) {
  const rows = qrRows(text);
  if (!rows) return "";
  const size = rows.length + 8;
  const path = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x + 4} ${y + 4}h1v1h-1z` : ""))).join("");
  return svg("svg", { class: "qr", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label },
    svg("rect", { width: size, height: size, fill: "#fff" }), svg("path", { d: path, fill: "#000" }));
}

// What the browser keeps. A browser may deny access to storage: then nothing is kept.

export function stored(store, name) {
  try { return store.getItem(name); } catch { return null; }
}

export function keep(store, name, text) {
  try { store.setItem(name, text); } catch { /* Kept until the page is closed. */ }
}

export function drop(store, name) {
  try { store.removeItem(name); } catch { /* There is no storage. */ }
}

/** The lists of devices that all screens share. */
const LISTS = ["favourites", "order", "hidden"];

/**
 * What the gateway keeps for all screens: favourites, the order of devices, and those that are hidden. Until it was read,
 * and where the gateway cannot be reached, what this browser had last.
 */
export class Shared {
  constructor(choices, changed) {
    this.choices = choices;
    this.changed = changed;
    /** What was chosen here and is not at the gateway yet. */
    this.unsaved = {};
    this.isBusy = false;
    /** Whether the gateway keeps it in a file. */
    this.isKept = true;
  }

  get(name, otherwise) { return this.choices.get(name, otherwise); }

  set(name, value) {
    this.choices.set(name, value);
    this.unsaved[name] = value;
    this.exchange();
  }

  /** Reads what the gateway has, and writes what it has not; `link` is open. */
  async exchange(link = this.link) {
    this.link = link;
    this.isWanted = true;
    if (this.isBusy || !link) return;
    this.isBusy = true;
    try {
      while (this.isWanted) {
        this.isWanted = false;
        await this.exchangeOnce();
      }
    } catch {
      // The next connection tries again.
    } finally {
      this.isBusy = false;
    }
  }

  async exchangeOnce() {
    const signal = AbortSignal.timeout(5000);
    const answer = await this.link.fetch("v1/panel", { signal });
    this.isKept = answer.headers.get("Settle-Kept") !== "memory";
    const document = await answer.json();
    // Any program may have written something else.
    const known = document !== null && typeof document === "object" && !Array.isArray(document) ? document : {};
    const isFirst = Object.keys(known).length === 0;
    // The first screen brings what it had before the gateway kept it.
    const own = isFirst ? Object.fromEntries(LISTS.map((name) => [name, this.get(name)])) : {};
    const sent = { ...this.unsaved };
    const wanted = JSON.parse(JSON.stringify({ ...known, ...own, ...sent }));
    if (JSON.stringify(wanted) !== JSON.stringify(document)) {
      const headers = { "Content-Type": "application/json" };
      await this.link.fetch("v1/panel", { method: "PUT", body: JSON.stringify(wanted), headers, signal });
    }
    for (const name in sent) if (this.unsaved[name] === sent[name]) delete this.unsaved[name];
    const text = () => JSON.stringify(LISTS.map((name) => this.get(name)));
    const before = text();
    for (const name of LISTS) if (!(name in this.unsaved) && Array.isArray(wanted[name])) this.choices.set(name, wanted[name]);
    if (text() !== before) this.changed();
  }
}

/** The choices of this browser: theme and language; and what it knows of those of all screens. */
export class Choices {
  constructor() {
    this.name = "settle.choices";
    this.values = {};
    try {
      const values = JSON.parse(stored(localStorage, this.name) ?? "{}");
      if (values && typeof values === "object") this.values = values;
    } catch {
      // An unreadable text is replaced at the next choice.
    }
  }

  get(name, otherwise) { return this.values[name] ?? otherwise; }

  set(name, value) {
    this.values[name] = value;
    keep(localStorage, this.name, JSON.stringify(this.values));
  }
}
