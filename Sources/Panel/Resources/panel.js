// Settle
// SPDX-License-Identifier: Apache-2.0

// The panel: handles messages from the gateway and changes of the user, and draws once per frame.

import { Arrange } from "./arrange.js";
import { Bar } from "./bar.js";
import { Pace, byId, say } from "./dom.js";
import { FADE, House, labelOf, Order, OVERDUE, unlocks } from "./house.js";
import { Link } from "./link.js";
import { Log } from "./log.js";
import { failureText, Rings } from "./mark.js";
import { Page } from "./page.js";
import { Reports } from "./reports.js";
import { Choices, followUpgrades, Settings, Shared, showTheme } from "./settings.js";
import { PendingBar, Sheet } from "./sheet.js";
import { spoken } from "./values.js";
import { choose, t, translate } from "./words.js";

/** How long the state of a key may take after the answer to its change. */
const ROW_TIMEOUT = 1000;

class Panel {
  constructor(choices) {
    this.house = new House();
    this.log = new Log();
    this.pace = new Pace(byId("house"));
    this.rings = new Rings(this.pace);
    this.shared = new Shared(choices, () => this.isLoaded && this.page.build());
    this.places = new Order(this.shared);
    this.dirty = new Set();
    this.isPlanned = false;
    this.progress = new Map();
    this.later = new Set();
    this.expected = new Set();
    this.looked = new WeakMap();
    this.link = new Link({
      state: (name, reason) => this.showLink(name, reason),
      snapshot: (answer, askedAt) => this.load(answer, askedAt),
      event: (event) => this.receive(event),
      row: (row, askedAt) => this.row(row, askedAt),
      shared: () => this.shared.exchange(this.link),
      added: (name, id) => this.mark(name, (target) => target.sent(id)),
      unsent: (name, isUnsent) => this.mark(name, (target) => { target.unsent = isUnsent; }),
      answer: (entry, refusal) => this.mark(entry.key, (target) => {
        if (refusal === null) target.arrived(entry.id);
        else target.refused(entry.id, refusal, performance.now(), entry.isMoment);
      }),
      dropped: (entry, reason) => this.mark(entry.key, (target) => target.refused(entry.id, reason, performance.now(), entry.isMoment)),
    });
    this.reports = new Reports(this.link);
    this.bar = new Bar(this);
    this.page = new Page(this);
    this.arrange = new Arrange(this);
    this.pending = new PendingBar(byId("pending"), this);
    this.sheet = new Sheet(byId("sheet"), this);
    this.settings = new Settings(byId("settings"), this, choices);
    addEventListener("hashchange", () => this.page.route());
    addEventListener("popstate", () => this.page.route());
  }

  // Messages from the gateway

  load(answer, askedAt) {
    const isOther = this.house.load(answer, performance.now(), askedAt);
    if (isOther || !this.isLoaded) {
      for (const key of this.progress.keys()) if (this.house.find(key.key) !== key) this.progress.delete(key);
      this.page.build();
    }
    const isFirst = !this.isLoaded;
    this.isLoaded = true;
    for (const key of this.house.keys.values()) this.dirty.add(key);
    this.draw();
    this.bar.showImport(answer.import);
    if (isFirst) this.page.route();
  }

  row(row, askedAt) {
    const key = this.house.find(row.key);
    if (!key) return this.house.hidden.has(row.key) ? undefined : this.link.refresh();
    const now = performance.now();
    key.row(row, now, askedAt);
    this.reports.take(key, now);
    this.touch(key);
  }

  receive(event) {
    const now = performance.now();
    const key = this.house.find(event.key);
    // A rejected change can name an unknown key.
    if (!key) return;
    this.house.count(event);
    this.log.take(key, event);
    key.event(event, this.house.moment(event.at, now), now);
    if (key.awaitsRow) this.expectRow(key);
    if (event.phase === "confirmed" && key.isOwn && event.id === key.newest) {
      say(byId("announcements"), t("confirmedSpoken", labelOf(key), spoken(key, event.value)));
    }
    this.touch(key);
  }

  /** Changes what is known of a key or of a scene, and draws it. */
  mark(name, change) {
    const scene = this.page.scenes.get(name);
    if (scene) {
      change(scene);
      return scene.draw();
    }
    const key = this.house.find(name);
    if (!key) return;
    change(key);
    if (key.landed === key.newest) this.expectRow(key);
    this.touch(key);
  }

  /** Reads the state of a key if it does not follow the answer to its change, as after a reconnection. */
  expectRow(key) {
    if (this.expected.has(key)) return;
    this.expected.add(key);
    setTimeout(() => {
      this.expected.delete(key);
      if (key.landed === key.newest && !key.isAccepted) key.answered(key.newest);
      if (key.awaitsRow) this.link.refreshKey(key.key);
    }, ROW_TIMEOUT);
  }

  // Changes of the user

  /** Requests a value; `shown` is what the key shows from now on, if the gateway computes it. */
  set(key, value, shown = value) {
    if (unlocks(key, value)) return this.confirm(key, () => this.request(key, value, shown));
    this.request(key, value, shown);
  }

  request(key, value, shown) {
    if (key.isUrgent(value)) return this.act(key, { set: value }, value);
    this.ask(key, shown ?? undefined, () => this.link.outbox.setValue(key.key, { set: value }));
  }

  /** Presses a button of an action. */
  press(key, word) {
    const act = () => this.act(key, { set: word }, undefined);
    if (unlocks(key, word)) return this.confirm(key, act);
    act();
  }

  /** Asks before it unlocks. */
  confirm(key, act) {
    const dialog = byId("ask");
    say(byId("ask-text"), t("askUnlock", key.device.label));
    say(byId("ask-yes"), t("unlockNow"));
    dialog.returnValue = "";
    dialog.onclose = () => { if (dialog.returnValue === "yes") act(); };
    dialog.showModal();
  }

  /** Moves each member of a group by so many steps. */
  step(key, amount) { this.act(key, { step: amount }, undefined); }

  /** Requests what belongs to its moment; `value` is undefined if it is not to be shown as the key's. */
  act(key, operation, value) {
    const isUrgent = key.isUrgent(operation.set);
    this.ask(key, value, () => this.link.outbox.act(key.key, operation, { isUrgent }), isUrgent);
  }

  ask(key, value, send, isUrgent = false) {
    key.ask(value, performance.now(), isUrgent);
    this.pending.follow(key);
    // Drawn now and not with the next frame, so that the number follows the pointer.
    this.show(key, performance.now());
    send();
    this.touch(key);
  }

  retry(key, value) {
    if (key.type === "action") this.press(key, value);
    else this.set(key, value);
  }

  /** What was typed cannot be read: it is not sent, and the value stays. */
  misread(key, reason) {
    key.misread(reason, performance.now());
    this.touch(key);
  }

  hold(key, isHeld) {
    if (key.held === isHeld) return;
    if (isHeld) this.house.follow(key);
    key.hold(isHeld);
    this.touch(key);
  }

  /** Sends or cancels what waits. */
  order(name, key) {
    this.link.outbox.act(key.key, { [name]: true }, { isOrder: true });
  }

  /** Moves the focus from a button that vanishes to the control of its key. */
  focus(key) {
    const row = this.sheet.rows.get(key);
    if (row) row.focus();
    else this.page.tileOf(key.device)?.focus();
  }

  // The open device, and its place

  open(device) { this.page.open(device); }

  sheetClosed(device) { this.page.sheetClosed(device); }

  toggleFavourite(device) {
    this.places.toggle("favourites", device);
    this.page.build();
    this.sheet.update(performance.now());
  }

  // Drawing

  touch(key) {
    this.dirty.add(key);
    if (this.isPlanned) return;
    this.isPlanned = true;
    this.pace.plan(() => this.draw());
  }

  /** Draws a key in its tile and its row, where they are on the page. */
  show(key, now) {
    this.page.tileOf(key.device)?.update(now);
    this.sheet.rows.get(key)?.update(now);
  }

  draw() {
    this.isPlanned = false;
    const now = performance.now();
    const devices = new Set();
    for (const key of this.dirty) {
      this.watch(key, key.progress(now), now);
      for (const device of [key.device, ...key.device.groups]) devices.add(device);
      this.sheet.rows.get(key)?.update(now);
    }
    this.dirty.clear();
    const all = [...devices].map((device) => this.page.tileOf(device)).filter((tile) => tile);
    this.page.look(all);
    const tiles = all.filter((tile) => tile.isSeen);
    for (const tile of tiles) tile.update(now);
    this.pace.count(tiles.length, now);
    if (devices.has(this.sheet.device)) this.sheet.update(now);
    this.pending.update(now);
    this.bar.update(devices);
  }

  /** Counts a key's progress, announces a failure, and draws the key again when its text changes by itself. */
  watch(key, progress, now) {
    const before = this.progress.get(key);
    this.progress.set(key, progress.name);
    // A failure from before the page was loaded is not announced.
    if (progress.name === "failed" && before && before !== "failed") this.alert(`${labelOf(key)}: ${failureText(progress)}`);
    if (progress.name === "waiting" && this.page.tileOf(key.device)?.isSeen) this.lookAgain(key, 2000, 2000);
    if (progress.name === "waiting" && progress.due !== null) this.drawLater(key, 1000);
    else if (key.fadesAt(now) > now) this.drawLater(key, key.fadesAt(now) - now + 20);
  }

  /** Reads a key again when its quiet period should have ended. */
  overdue(key, by) {
    if (by > OVERDUE) this.lookAgain(key, 1000, 0);
  }

  lookAgain(key, pause, delay) {
    const now = performance.now();
    if (now - (this.looked.get(key) ?? -pause) < pause) return;
    this.looked.set(key, now);
    setTimeout(() => this.link.refreshKey(key.key), delay);
  }

  drawLater(key, delay) {
    if (this.later.has(key)) return;
    this.later.add(key);
    setTimeout(() => {
      this.later.delete(key);
      this.touch(key);
    }, delay);
  }

  showLink(name, reason) {
    if (name === "asleep") return;
    this.bar.showLink(name, reason);
    if (name === "live") {
      followUpgrades(this);
      this.reports.renew();
    }
    for (const key of this.house.keys.values()) if (key.unsent || key.asked) this.touch(key);
  }

  /** Whether nobody would miss anything if the page were loaded again. */
  get isIdle() {
    const isUsed = document.querySelector("dialog[open]") || document.activeElement?.matches("input:not([type=range])") || this.page.text;
    return !isUsed && !this.arrange.isOn && this.link.outbox.isEmpty && ![...this.house.keys.values()].some((key) => key.held);
  }

  alert(text) {
    this.wall?.wake();
    const alerts = byId("alerts");
    alerts.textContent = "";
    // Cleared first, so that a repeated text is announced again.
    setTimeout(() => { alerts.textContent = text; }, 50);
  }
}

const choices = new Choices();
choose(choices.get("language", null));
showTheme(choices.get("theme", "auto"));
translate();
const panel = new Panel(choices);
if (new URLSearchParams(location.search).has("kiosk")) import("./wall.js").then(({ Wall }) => { panel.wall = new Wall(panel); });
panel.link.run();
// For tests.
globalThis.settlePanel = panel;
