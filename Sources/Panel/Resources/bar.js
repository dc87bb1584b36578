// Settle
// SPDX-License-Identifier: Apache-2.0

// The bar: the connection, the search, the filters, the count, and the page that asks for the token.

import { byId, h, hide, say, set } from "./dom.js";
import { partOf, sumsOf } from "./house.js";
import { keep, stored } from "./settings.js";
import { counted } from "./values.js";
import { t } from "./words.js";

/** The least time, in milliseconds, between two counts. */
const PACE = 250;
/** When the devices were imported that somebody has looked at last, in this browser. */
const SEEN = "settle.imported";

export class Bar {
  constructor(app) {
    this.app = app;
    this.state = "connecting";
    this.countedAt = 0;
    this.timer = null;
    /** The devices that were imported since somebody looked, how many, and when the last were. */
    this.added = new Set();
    this.addedCount = 0;
    this.addedAt = 0;
    /** What sums up the house, by name, with the button of each. */
    this.sums = new Map();
    this.sumButtons = new Map();
    /** The devices that changed since the last count, and what each contributes to the sums. */
    this.changed = new Set();
    this.parts = new WeakMap();
    byId("notice-show").addEventListener("click", () => {
      this.lookedAtAdded();
      app.page.showOnly("added");
    });
    byId("notice-close").addEventListener("click", () => this.lookedAtAdded());
    const filter = byId("filter");
    filter.addEventListener("input", () => app.page.search(filter.value));
    addEventListener("keydown", (event) => {
      const isTyping = event.target.closest("input:not([type=range], [type=radio], [type=color]), select, dialog");
      if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        filter.focus();
      }
    });
    this.chips = [...document.querySelectorAll("[data-only]")];
    for (const chip of this.chips) chip.addEventListener("click", () => this.toggle(chip.dataset.only));
    byId("open-settings").addEventListener("click", () => app.settings.open());
    new ResizeObserver(() => {
      const height = `${byId("bar").offsetHeight}px`;
      const { style } = document.documentElement;
      if (style.getPropertyValue("--bar") !== height) style.setProperty("--bar", height);
    }).observe(byId("bar"));
    this.listenToLogin();
  }

  toggle(only) { this.app.page.showOnly(this.app.page.only === only ? null : only); }

  /** Whether the sums are others: there are other tiles, or what a changed device contributes is another. */
  hasOtherSums() {
    const { tiles } = this.app.page;
    let isOther = this.summed !== tiles;
    this.summed = tiles;
    for (const device of isOther ? tiles.keys() : this.changed) {
      const part = tiles.has(device) ? partOf(device, tiles.get(device).plan) : null;
      isOther ||= this.parts.get(device) !== part;
      this.parts.set(device, part);
    }
    this.changed.clear();
    return isOther;
  }

  sum() {
    this.found = sumsOf([...this.app.page.tiles].map(([device, tile]) => [device, tile.plan]));
    this.app.wall?.see(this.found);
  }

  /** A line that sums up the house; each part of it is a filter. */
  sumUp() {
    const { page } = this.app;
    if (this.hasOtherSums()) this.sum();
    const old = this.sums.get(page.only);
    this.sums = new Map(this.found.map((sum) => [`sum:${sum.name}`, sum]));
    // What filters the page stays until it is pressed again.
    if (old && !this.sums.has(page.only)) this.sums.set(page.only, old);
    const row = byId("sums");
    for (const [name, button] of this.sumButtons) {
      if (this.sums.has(name)) continue;
      button.remove();
      this.sumButtons.delete(name);
    }
    [...this.sums].forEach(([name, { text, notice }], place) => {
      if (!this.sumButtons.has(name)) this.sumButtons.set(name, h("button", { type: "button", class: "chip sum", onclick: () => this.toggle(name) }));
      const button = this.sumButtons.get(name);
      say(button, text);
      set(button, "data-notice", notice);
      set(button, "aria-pressed", String(name === page.only));
      if (row.children[place] !== button) row.insertBefore(button, row.children[place] ?? null);
    });
    hide(row, this.sums.size === 0);
  }

  listenToLogin() {
    const login = byId("login");
    login.addEventListener("cancel", (event) => event.preventDefault());
    // A browser closes a dialog at the second Escape whatever the page says.
    login.addEventListener("close", () => { if (this.state === "locked") login.showModal(); });
    byId("login-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const token = byId("token").value.trim();
      if (token === "") return;
      say(byId("login-error"), "");
      this.app.link.unlock(token, byId("remember").checked);
    });
  }

  showLink(name, reason) {
    this.state = name;
    this.reason = reason;
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
  }

  /** Says how many devices the gateway has imported since somebody looked. */
  showImport(facts) {
    const at = facts?.added_at ?? 0;
    if (at === 0 || at === this.addedAt || String(at) === stored(localStorage, SEEN)) return;
    this.addedAt = at;
    if (this.addedCount === 0) this.added.clear();
    for (const id of facts.added) this.added.add(id);
    this.addedCount += facts.added_count;
    const refused = facts.refused_count > 0 ? t("refusedNotice", counted(facts.refused_count)) : "";
    say(byId("notice-text"), t("addedNotice", this.addedCount) + refused);
    hide(byId("notice"), false);
  }

  lookedAtAdded() {
    keep(localStorage, SEEN, String(this.addedAt));
    this.addedCount = 0;
    hide(byId("notice"), true);
  }

  showBanner() {
    const state = this.state === "live" && !this.app.house.hasBroker ? "noBroker" : this.state;
    set(byId("link"), "data-state", state);
    say(byId("link-text"), t(state));
    const text = state === "lost" ? t("lostBanner", this.reason.charAt(0).toUpperCase() + this.reason.slice(1))
      : state === "noBroker" ? t("brokerBanner") : "";
    hide(byId("banner"), text === "");
    say(byId("banner"), text);
    set(document.body, "data-link", this.state);
  }

  /** Counts after a change of `devices`, but not at every frame. */
  update(devices = []) {
    for (const device of devices) this.changed.add(device);
    const now = performance.now();
    if (now - this.countedAt < PACE) {
      this.timer ??= setTimeout(() => {
        this.timer = null;
        this.update();
      }, Math.ceil(PACE - (now - this.countedAt)));
      return;
    }
    this.countedAt = now;
    const { house, progress, page } = this.app;
    const counts = { settling: 0, failed: 0, offline: house.devices.filter((device) => !device.online).length };
    // Only while they are shown: it leads back to all.
    counts.added = page.only === "added" ? this.added.size : 0;
    for (const name of progress.values()) {
      if (name === "settling" || name === "waiting" || name === "unsent") counts.settling += 1;
      if (name === "failed") counts.failed += 1;
    }
    for (const chip of this.chips) {
      const count = counts[chip.dataset.only];
      hide(chip, count === 0 && page.only !== chip.dataset.only);
      say(chip.firstElementChild, String(count));
      set(chip, "aria-pressed", String(chip.dataset.only === page.only));
    }
    this.sumUp();
    const { changes, commands } = house.totals;
    hide(byId("tally"), changes === 0);
    say(byId("tally-changes"), counted(changes));
    say(byId("tally-commands"), counted(commands));
    this.showBanner();
  }
}
