// Settle
// SPDX-License-Identifier: Apache-2.0

// The panel: handles messages from the gateway and changes of the user, and draws once per frame.

import { CardView } from "./cards.js";
import { say, set } from "./dom.js";
import { House } from "./house.js";
import { FADE } from "./key.js";
import { Link } from "./link.js";
import { Rings } from "./mark.js";
import { Timeline } from "./timeline.js";
import { counted, spoken } from "./values.js";
import { t, translate } from "./words.js";

const byId = (id) => document.getElementById(id);

class Panel {
  constructor() {
    this.house = new House();
    this.rings = new Rings();
    this.cards = [];
    this.views = new Map();
    this.dirty = new Set();
    this.isAllDirty = false;
    this.frame = 0;
    this.wanted = [];
    this.only = null;
    this.kept = new Set();
    this.isLoaded = false;
    this.columnCount = 0;
    this.totalsAt = 0;
    this.progress = new Map();
    this.later = new Set();
    this.link = new Link({
      state: (name, reason) => this.showLink(name, reason),
      snapshot: (answer) => this.load(answer),
      event: (event) => this.receive(event),
      row: (row) => this.row(row),
      sent: (key, id) => this.house.find(key)?.sent(id),
      answer: (id, key, refusal) => this.answer(id, key, refusal),
      unsent: (keys) => keys.forEach((name) => this.mark(name, (key) => { key.unsent = true; })),
      dropped: (name, id, reason) => this.mark(name, (key) => {
        key.unsent = false;
        key.refused(id, reason, performance.now());
      }),
    });
    this.timeline = new Timeline(byId("timeline"), this);
    this.listen();
  }

  listen() {
    const filter = byId("filter");
    filter.addEventListener("input", () => {
      this.wanted = filter.value.trim().toLowerCase().split(/\s+/).filter((word) => word);
      this.showFiltered();
    });
    addEventListener("keydown", (event) => {
      const isTyping = event.target.closest("input:not([type=range], [type=radio], [type=color]), select, dialog");
      if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        filter.focus();
      }
    });
    for (const chip of document.querySelectorAll("[data-only]")) {
      chip.addEventListener("click", () => this.showOnly(this.only === chip.dataset.only ? null : chip.dataset.only));
    }
    new ResizeObserver(() => this.spread(false)).observe(byId("cards"));
    const login = byId("login");
    login.addEventListener("cancel", (event) => event.preventDefault());
    // A browser closes a dialog at the second Escape whatever the page says.
    login.addEventListener("close", () => { if (this.linkState === "locked") login.showModal(); });
    new ResizeObserver(() => {
      document.documentElement.style.setProperty("--bar", `${byId("bar").offsetHeight}px`);
    }).observe(byId("bar"));
    byId("login-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const token = byId("token").value.trim();
      if (token === "") return;
      say(byId("login-error"), "");
      this.link.unlock(token, byId("remember").checked);
    });
  }

  // Messages from the gateway

  load(answer) {
    const isOther = this.house.load(answer, performance.now());
    if (isOther || !this.isLoaded) this.build();
    this.isLoaded = true;
    this.showAll();
  }

  row(row) {
    const key = this.house.find(row.key);
    if (!key) return this.house.hidden.has(row.key) ? undefined : this.link.refresh();
    key.row(row, performance.now());
    this.touch(key);
  }

  receive(event) {
    const now = performance.now();
    const key = this.house.find(event.key);
    // A rejected change can name an unknown key.
    if (!key) return;
    this.house.count(event);
    key.event(event, this.house.moment(event.at, now), now);
    if (event.phase === "confirmed" && key.isOwn && event.id === key.newest) {
      const view = this.views.get(key);
      if (view) say(byId("announcements"), t("confirmedSpoken", view.label, spoken(key, event.value)));
    }
    this.touch(key);
  }

  answer(id, name, refusal) {
    const key = this.house.find(name);
    if (!key) return;
    if (refusal === null) key.arrived(id);
    else key.refused(id, refusal, performance.now());
    this.touch(key);
  }

  refreshKey(key) { this.link.refreshKey(key.key); }

  mark(name, change) {
    const key = this.house.find(name);
    if (!key) return;
    change(key);
    this.touch(key);
  }

  // Changes of the user

  /** Requests a change; `value` is undefined if the gateway computes it. */
  change(key, operation, value) {
    key.ask(value, performance.now());
    // Drawn now and not with the next frame, so that the number follows the pointer.
    this.views.get(key)?.update(performance.now());
    this.link.outbox.add(key.key, operation);
    this.touch(key);
  }

  hold(key, isHeld) {
    if (key.held === isHeld) return;
    if (isHeld) this.house.follow(key);
    key.hold(isHeld);
    this.touch(key);
  }

  async order(name, key) {
    if (!key) return;
    try {
      await this.link.post(`v1/${name}`, { key: key.key });
    } catch (problem) {
      this.alert(problem.message);
    }
  }

  openTimeline(key) { this.timeline.open(key, this.views.get(key)?.label ?? key.key); }

  // Drawing

  touch(key) {
    this.dirty.add(key);
    this.schedule();
  }

  showAll() {
    this.isAllDirty = true;
    this.schedule();
  }

  schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const now = performance.now();
    const views = this.isAllDirty ? this.views.values() : [...this.dirty].map((key) => this.views.get(key));
    for (const view of views) {
      if (view) this.watch(view.key, view.update(now), now);
    }
    if (this.isAllDirty) {
      for (const card of this.cards) card.update();
    } else {
      for (const device of new Set([...this.dirty].map((key) => key.device))) this.cardOf.get(device)?.update();
    }
    this.dirty.clear();
    this.isAllDirty = false;
    this.showTotals();
  }

  /** Counts a key's progress, and draws the key again when its text changes by itself. */
  watch(key, progress, now) {
    this.progress.set(key, progress.name);
    if (progress.name === "waiting" && progress.due !== null) this.drawLater(key, 1000);
    else if (key.isFresh(now)) this.drawLater(key, key.endedAt + FADE - now + 20);
  }

  drawLater(key, delay) {
    if (this.later.has(key)) return;
    this.later.add(key);
    setTimeout(() => {
      this.later.delete(key);
      this.touch(key);
    }, delay);
  }

  build() {
    // Cards are not rebuilt while a control is held.
    if ([...this.views.keys()].some((key) => key.held)) {
      setTimeout(() => this.build(), 300);
      return;
    }
    // A card of the same device stays, with its focus.
    const old = new Map(this.cards.map((card) => [card.device, card]));
    this.cards = this.house.devices.map((device) => old.get(device) ?? new CardView(device, this));
    this.cardOf = new Map(this.cards.map((card) => [card.device, card]));
    this.views = new Map(this.cards.flatMap((card) => card.views.map((view) => [view.key, view])));
    for (const view of this.rings.views.keys()) if (this.views.get(view.key) !== view) this.rings.views.delete(view);
    for (const key of this.progress.keys()) if (!this.views.has(key)) this.progress.delete(key);
    const now = performance.now();
    for (const view of this.views.values()) this.watch(view.key, view.update(now), now);
    for (const card of this.cards) card.update();
    this.showFiltered();
  }

  // Columns: a card stays in its column when others change.

  spread(isForced) {
    const box = byId("cards");
    const style = getComputedStyle(box);
    const unit = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const gap = parseFloat(style.columnGap) || unit;
    const most = Math.max(1, Math.floor((box.clientWidth + gap) / (20.5 * unit + gap)));
    const shown = this.cards.filter((card) => !card.node.hidden);
    const count = Math.min(most, Math.max(1, shown.length));
    if (!isForced && count === this.columnCount) return;
    this.columnCount = count;
    const focused = document.activeElement;
    const columns = Array.from({ length: count }, () => ({ node: document.createElement("div"), height: 0 }));
    for (const card of shown) {
      const column = columns.reduce((best, other) => (other.height < best.height - 0.01 ? other : best));
      column.node.append(card.node);
      column.height += card.height;
    }
    for (const column of columns) column.node.className = "column";
    box.replaceChildren(...columns.map((column) => column.node));
    set(box, "data-columns", count < most ? "few" : "all");
    if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  }

  showOnly(only) {
    this.only = only;
    this.kept = new Set();
    this.showFiltered();
  }

  belongs(card) {
    if (this.only === null) return true;
    if (this.kept.has(card)) return true;
    const names = { settling: ["settling", "waiting", "unsent"], failed: ["failed"] }[this.only];
    return names ? card.views.some((view) => names.includes(this.progress.get(view.key))) : !card.device.online;
  }

  showFiltered() {
    let count = 0;
    for (const card of this.cards) {
      const isShown = card.filter(this.wanted) && this.belongs(card);
      card.node.hidden = !isShown;
      // A shown card stays until the filter changes, so that no card vanishes under the pointer.
      if (isShown && this.only !== null) this.kept.add(card);
      if (isShown) count += 1;
    }
    for (const chip of document.querySelectorAll("[data-only]")) set(chip, "aria-pressed", String(chip.dataset.only === this.only));
    this.spread(true);
    const empty = byId("empty");
    empty.hidden = count > 0;
    if (count === 0) {
      say(empty, this.cards.length === 0 ? t("noDevices")
        : this.wanted.length > 0 ? t("nothingCalled", byId("filter").value.trim()) : t("nothing"));
    }
  }

  showTotals() {
    const now = performance.now();
    if (now - this.totalsAt < 200) {
      this.totalsTimer ??= setTimeout(() => {
        this.totalsTimer = null;
        this.showTotals();
      }, 220);
      return;
    }
    this.totalsAt = now;
    const counts = { settling: 0, failed: 0, offline: this.house.devices.filter((device) => !device.online).length };
    for (const name of this.progress.values()) {
      if (name === "settling" || name === "waiting" || name === "unsent") counts.settling += 1;
      if (name === "failed") counts.failed += 1;
    }
    for (const chip of document.querySelectorAll("[data-only]")) {
      const count = counts[chip.dataset.only];
      chip.hidden = count === 0 && this.only !== chip.dataset.only;
      say(chip.firstElementChild, String(count));
    }
    const { changes, commands } = this.house.totals;
    byId("tally").hidden = changes === 0;
    say(byId("tally-changes"), counted(changes));
    say(byId("tally-commands"), counted(commands));
    this.showBanner();
  }

  showLink(name, reason) {
    this.linkState = name;
    this.linkReason = reason;
    if (name === "asleep") return;
    const login = byId("login");
    if (name === "locked") {
      if (!login.open) login.showModal();
      say(byId("login-error"), reason ?? "");
      byId("token").select();
    } else if (login.open && name === "live") {
      login.close();
      byId("token").value = "";
    }
    this.showBanner();
    this.showAll();
  }

  showBanner() {
    const state = this.linkState === "live" && !this.house.hasBroker ? "noBroker" : this.linkState ?? "connecting";
    set(byId("link"), "data-state", state);
    say(byId("link-text"), t(state));
    const banner = byId("banner");
    const text = state === "lost" ? t("lostBanner", this.linkReason.charAt(0).toUpperCase() + this.linkReason.slice(1))
      : state === "noBroker" ? t("brokerBanner") : "";
    banner.hidden = text === "";
    say(banner, text);
    set(document.body, "data-link", this.linkState ?? "connecting");
  }

  alert(text) {
    const alerts = byId("alerts");
    alerts.textContent = "";
    // Cleared first, so that a repeated text is announced again.
    setTimeout(() => { alerts.textContent = text; }, 50);
  }
}

translate();
const panel = new Panel();
panel.link.run();
// For tests.
globalThis.settlePanel = panel;
