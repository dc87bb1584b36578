// Settle
// SPDX-License-Identifier: Apache-2.0

// A tile for each device. Only tiles near the visible part of the page have a body, and only those on it follow
// changes.

import { shareOf, stepButton, stepper, ThickSlider, toggle } from "./controls.js";
import { h, hide, icon, redraw, say, set, vanish } from "./dom.js";
import { directionOf, inOrder, isOn, labelOf, lightOf, noticeOf, planOf } from "./house.js";
import { BoxMark, failureText, Mark, needOf, OVER, statusText } from "./mark.js";
import { Day, hasHistory } from "./reports.js";
import { folded, readable, short, spoken, textOf } from "./values.js";
import { t } from "./words.js";

let numbers = 0;

export class TileView {
  constructor(device, app) {
    this.device = device;
    this.app = app;
    this.plan = planOf(device);
    this.isSeen = false;
    /** Whether it is hidden because somebody wanted that. */
    this.isAway = false;
    numbers += 1;
    // Parts that do not fit wrap out of sight.
    this.parts = [h("span"), h("span"), h("span")];
    this.state = h("span", { class: "tile-state", id: `tile-${numbers}` }, this.parts[0], " ", this.parts[1], " ", this.parts[2]);
    this.title = h("span", { class: "tile-title", dir: "auto" });
    this.name = h("button", { type: "button", class: "tile-name", "aria-haspopup": "dialog", "aria-describedby": this.state.id, onclick: () => app.open(device) },
      this.title, this.state);
    this.node = h("div", { class: "tile", role: "group", "data-device": device.id, "data-kind": this.plan.kind },
      h("div", { class: "tile-head" }, h("h3", { class: "tile-names" }, this.name)));
    this.node.tile = this;
    if (this.plan.isLamp) this.node.dataset.kind = "light";
    this.words = folded(`${device.name}\n${device.id}\n${device.area ?? ""}`);
    this.keyWords = device.keys.map((key) => folded(`${key.name ?? readable(key.id)}\n${key.key}`));
  }

  /** Names the tile: with its area among others that have one, where the name alone is not clear. */
  call(isMixed) {
    const { label, name } = this.device;
    say(this.title, isMixed ? label : name);
    for (const node of [this.name, this.node]) set(node, "aria-label", label);
  }

  /** Builds the rest of the tile; it is kept when the tile leaves the page. */
  fill() {
    if (this.body) return;
    const { plan, app } = this;
    const head = this.node.firstElementChild;
    this.power = plan.power && (plan.kind === "light" || plan.kind === "number" || plan.kind === "climate") ? this.powerButton() : null;
    this.body = bodyFor(plan, app);
    this.sign = this.power ?? this.body.sign ?? h("span", { class: "tile-icon" }, icon(signOf(plan)));
    this.mark = new Mark();
    this.retry = h("button", { type: "button", class: "round tile-retry", hidden: true, onclick: () => this.again() }, icon("retry"));
    head.prepend(this.sign);
    head.append(this.mark.node, this.retry);
    if (this.body.node) this.node.append(this.body.node);
  }

  powerButton() {
    const key = this.plan.power;
    return h("button", {
      type: "button", class: "tile-power", role: "switch", "aria-label": labelOf(key),
      onclick: () => this.app.set(key, key.shown !== true),
    }, icon(signOf(this.plan)));
  }

  /** The tile comes onto the page, or leaves it: then its rings rest. */
  see(isSeen) {
    if (this.isSeen === isSeen) return;
    this.isSeen = isSeen;
    if (isSeen) this.draw(performance.now());
    if (this.body?.day) this.app.reports.see(this.body.day, isSeen);
    if (isSeen) return;
    this.app.rings.views.delete(this);
    if (this.body?.view) this.app.rings.views.delete(this.body.view);
  }

  /** Draws the tile before it comes onto the page. */
  prepare() {
    if (!this.isSeen) this.draw(performance.now());
  }

  update(now) {
    if (this.isSeen) this.draw(now);
  }

  draw(now) {
    this.fill();
    const { plan, device } = this;
    set(this.node, "data-offline", device.online ? null : "");
    if (this.power) set(this.power, "aria-checked", plan.power.shown === true ? "true" : "false");
    if (this.power) set(this.power, "data-unknown", typeof plan.power.shown === "boolean" ? null : "");
    const isOff = plan.power?.shown === false;
    set(this.node, "data-on", isOn(plan) ? "" : null);
    if (plan.kind === "light" || plan.isLamp) this.light(lightOf(plan));
    if (!this.body.sign) redraw(this.sign, signOf(plan));
    const notice = noticeOf(device, plan);
    set(this.node, "data-notice", notice);
    const leading = this.leading(now);
    this.body.update(now, isOff);
    this.follow(this.body.mark, plan.main, now);
    // The ring is at the thumb or figure of the main property, and at the head for the others.
    const isElsewhere = leading && (leading.key !== plan.main || !this.body.mark);
    const progress = isElsewhere ? leading.progress : { name: "idle" };
    this.mark.show(progress);
    set(this.mark.node, "data-old", isElsewhere && leading.need > 0 ? null : "");
    if (this.isSeen) this.app.rings.follow(this, progress);
    this.failed = leading?.progress.name === "failed" ? leading : null;
    const canRetry = Boolean(this.failed) && this.failed.progress.value !== undefined && this.failed.progress.value !== null;
    vanish(this.retry, !canRetry, () => this.focus());
    set(this.node, "data-retry", canRetry ? "" : null);
    if (canRetry) set(this.retry, "aria-label", `${labelOf(this.failed.key)}: ${t("retry")}`);
    // Another attribute than that of the rings, so that a change of it is none of theirs.
    set(this.node, "data-state", leading?.need ? leading.progress.name : "idle");
    const parts = this.stateParts(leading, isOff, now);
    this.parts.forEach((node, place) => {
      const part = parts[place] ?? "";
      say(node, place > 0 && part ? `· ${part}` : part);
    });
    hide(this.state, parts.length === 0);
    set(this.state, "title", this.failed ? failureText(this.failed.progress) : null);
  }

  light(color) {
    if (this.lamp === color) return;
    this.lamp = color;
    this.node.style.setProperty("--lamp", color);
  }

  /** Shows the progress of the main property at its thumb or figure. */
  follow(mark, key, now) {
    if (!mark) return;
    const progress = key.progress(now);
    mark.show(progress);
    set(mark.node, "data-old", key.isFresh(now) || !OVER.has(progress.name) ? null : "");
    this.body.view ??= { key, mark, overdue: (by) => this.app.overdue(key, by) };
    if (this.isSeen) this.app.rings.follow(this.body.view, progress);
  }

  /** The key that needs attention most. */
  leading(now) {
    let best = null;
    for (const key of this.device.keys) {
      const progress = key.progress(now);
      const need = needOf(key, progress, now);
      if (need > 0 && (best === null || need > best.need || (need === best.need && key === this.plan.main))) best = { key, progress, need };
    }
    return best;
  }

  /** Whether it is shown even if it is hidden: for an alarm or a failure, and until what follows is over. */
  get isNeeded() {
    const leading = this.leading(performance.now());
    return leading?.progress.name === "failed" || (leading !== null && !this.isAway) || noticeOf(this.device, this.plan) === "alarm";
  }

  /** What the tile says below its name, most important first. */
  stateParts(leading, isOff, now) {
    const { device } = this;
    if (!device.online && !(leading?.need > 2)) return [t("offline")];
    if (leading?.progress.name === "failed") return [t(leading.progress.isExpired ? "expired" : "failed"), leading.progress.reason];
    if (leading?.need > 0) {
      const text = statusText(leading.key, leading.progress, now);
      if (text) return text.split(" · ");
    }
    const { plan } = this;
    const low = plan.sense && plan.kind === "reading" ? null : device.keys.find((key) => key.notice === "low");
    const beside = plan.kind === "reading" ? [] : plan.readings.filter((key) => tells(key, plan)).slice(0, 2).map((key) => spoken(key, key.shown));
    return [low ? batteryText(low) : null, ...this.body.text(isOff).split(" · "), ...beside].filter((part) => part);
  }

  /** Moves the focus to the control, or to the name where there are several. */
  focus() {
    const nodes = [...this.node.querySelectorAll(".tile-body :is(input, select, [role=switch])")];
    (nodes.find((node) => node.offsetParent) ?? this.name).focus({ preventScroll: true });
  }

  again() { this.app.retry(this.failed.key, this.failed.progress.value); }

  overdue(by) {
    const leading = this.leading(performance.now());
    if (leading) this.app.overdue(leading.key, by);
  }

  /** Whether each word is in the device's names or in those of one property. */
  matches(words) {
    return words.every((word) => this.words.includes(word)) || this.found(words) !== null;
  }

  /** The property whose names have the words that the device's have not; null if there is none. */
  found(words) {
    const missing = words.filter((word) => !this.words.includes(word));
    if (missing.length === 0) return null;
    return this.device.keys[this.keyWords.findIndex((own) => missing.every((word) => own.includes(word)))] ?? null;
  }
}

const SIGNS = { light: "bulb", cover: "blind", climate: "flame", switch: "plug", number: "dial", choice: "list", text: "text", action: "press" };
const CLASS_SIGNS = {
  door: "door", opening: "door", gate: "door", garage_door: "garage", garage: "garage", window: "window", moisture: "drop", smoke: "smoke", gas: "smoke",
  carbon_monoxide: "smoke", motion: "motion", occupancy: "motion", presence: "motion", moving: "motion", vibration: "motion",
};

function signOf(plan) {
  if (plan.kind === "lock") return plan.main.notice ? "unlock" : "lock";
  if (plan.isLamp) return "bulb";
  const { sense } = plan;
  const sign = plan.kind === "reading" && sense ? CLASS_SIGNS[sense.class] : null;
  if (sign) return sense.notice === "open" ? `${sign}Open` : sign;
  if (plan.kind === "reading") return plan.readings.some((key) => key.class === "temperature") ? "warm" : "gauge";
  return SIGNS[plan.kind] ?? "gauge";
}

/** Whether a reading belongs behind the state: that of a lamp says how it is lit, and a battery is silent while it is good. */
function tells(key, plan) {
  if (key.class === "battery" || (plan.kind === "climate" && key === plan.actual)) return false;
  return plan.kind !== "light" || typeof key.shown === "number";
}

function batteryText(key) { return `${t("battery")} ${typeof key.shown === "boolean" ? textOf(key, key.shown).toLowerCase() : spoken(key, key.shown)}`; }

/** What a power property says: of a group whose members differ, how many are on. */
function powerText(key, app) {
  if (key.shown === null && !key.isHeard) return t("unheard");
  const members = key.shown === null && key.device.isGroup ? app.house.membersOf(key) : [];
  return members.length > 0 ? t("someOn", members.filter((member) => member.shown === true).length, members.length) : spoken(key, key.shown);
}

// What a tile has below its name, by its kind. Each body is `{ node, mark, update(now, isOff), text(isOff) }`:
// `mark` is the ring of the main property, `text` what the tile says when nothing happens, and `sign`, if there is
// one, what it has in place of an icon.

function bodyFor(plan, app) {
  switch (plan.kind) {
    case "climate": return steps(plan, app);
    case "cover": return plan.movement ? cover(plan, app) : slider(plan, app);
    case "light":
    case "number": return plan.main.range ? slider(plan, app) : plan.main.type === "color" ? nothing(plan) : steps(plan, app);
    case "lock":
    case "switch": return power(plan, app);
    case "choice": return choice(plan, app);
    case "action": return action(plan, app);
    case "reading": return figures(plan, app);
    default: return nothing(plan);
  }
}

function slider({ main, power: powerKey, kind }, app) {
  const thick = new ThickSlider(main, labelOf(main), app);
  return {
    node: h("div", { class: "tile-body" }, thick.node), mark: thick.mark,
    update: (_, isOff) => thick.update(isOff, t("off")),
    text: () => (powerKey ? powerText(powerKey, app) : kind === "light" ? "" : main.name ?? readable(main.id)),
  };
}

/** Actual and target; the target between − and +. */
function steps({ main, actual, mode }, app) {
  const label = labelOf(main);
  const figure = h("span", { class: "tile-figure" });
  const mark = new BoxMark();
  const step = stepper(main, app);
  return {
    node: h("div", { class: "tile-body tile-steps" }, stepButton("minus", `${label}: ${t("less")}`, () => step(-1)),
      h("span", { class: "boxed" }, mark.node, figure), stepButton("plus", `${label}: ${t("more")}`, () => step(1))),
    mark,
    update: () => say(figure, short(main, main.shown)),
    text: () => [actual ? t("now", spoken(actual, actual.shown)) : null, mode ? readable(mode.shown ?? "") : null].filter((part) => part).join(" · ")
      || (main.name ?? readable(main.id)),
  };
}

/** A window with its blind, and up, stop and down: stop is the largest. */
function cover({ movement, position }, app) {
  const label = labelOf(movement);
  const shade = h("span", { class: "shade" });
  const buttons = inOrder(movement.values).map((word) => h("button", {
    type: "button", class: `button move-${directionOf(word)}`, "aria-label": `${label}: ${readable(word)}`,
    onclick: () => app.press(movement, word),
  }, icon(directionOf(word))));
  return {
    node: h("div", { class: "tile-body moves", role: "group", "aria-label": label }, ...buttons),
    sign: position ? h("span", { class: "window", "aria-hidden": "true" }, shade) : null,
    mark: null,
    update: () => {
      const value = position?.actual ?? position?.shown;
      if (typeof value === "number") shade.style.setProperty("--shade", (1 - shareOf(position, value)).toFixed(3));
    },
    text: () => {
      const value = position?.shown;
      if (typeof value !== "number") return position ? t("unknown") : "";
      return value === position.range[1] ? t("open") : value === position.range[0] ? t("closed") : t("openBy", spoken(position, value));
    },
  };
}

function power({ main }, app) {
  const words = [["wide-on", textOf(main, true)], ["wide-off", textOf(main, false)]];
  const control = toggle(main, labelOf(main), app, words.map(([name, text]) => h("span", { class: name, "data-long": isLong(text) }, text)));
  return { node: h("div", { class: "tile-body wide" }, control.aside), mark: null, update: control.update, text: () => powerText(main, app) };
}

function choice({ main }, app) {
  const select = h("select", { class: "field", "aria-label": labelOf(main), onchange: () => app.set(main, select.value) },
    h("option", { value: "", disabled: true, hidden: true }, "–"), ...(main.values ?? []).map((word) => h("option", { value: word }, readable(word))));
  return {
    node: h("div", { class: "tile-body" }, select), mark: null, text: () => main.name ?? readable(main.id),
    update: () => {
      const value = main.values?.includes(main.shown) ? main.shown : "";
      if (select.value !== value) select.value = value;
    },
  };
}

function action({ main }, app) {
  if (!main.values?.length) return nothing({ main });
  const buttons = main.values.slice(0, 3).map((word) => h("button", {
    type: "button", class: "button", "aria-label": `${labelOf(main)}: ${readable(word)}`, onclick: () => app.press(main, word),
  }, h("span", {}, readable(word))));
  return { node: h("div", { class: "tile-body moves" }, ...buttons), mark: null, update: () => {}, text: () => main.name ?? readable(main.id) };
}

/** Whether a word is too long for large type. */
function isLong(text) { return text.length > 9; }

/** Readings: small figures with their names, the telling one first. What has no room wraps out of sight. */
function figures({ readings, sense, battery }, app) {
  const others = readings.filter((key) => key !== sense && key.class !== "battery");
  const shown = [...(sense ? [sense] : []), ...others];
  const cells = (shown.length > 0 ? shown : readings).slice(0, 3).map((key) => {
    const [figure, unit] = [h("span"), h("span", { class: "reading-unit" })];
    const value = h("b", { dir: "auto" }, figure, unit);
    const below = key === sense && battery ? battery : null;
    const small = h("small", {}, below ? "" : key.name ?? readable(key.id));
    return { key, figure, unit, below, small, node: h("span", { class: "reading-cell" }, value, small) };
  });
  const nodes = cells.map((cell) => cell.node);
  const day = cells.length > 0 && hasHistory(cells[0].key) ? new Day(cells[0].key, app.reports) : null;
  return {
    node: day ? day.around(nodes) : h("div", { class: "tile-body readings" }, ...nodes), mark: null, text: () => "", day,
    update: () => {
      for (const { key, figure, unit, below, small } of cells) {
        const text = spoken(key, key.shown);
        const end = typeof key.shown === "number" ? text.lastIndexOf(" ") : -1;
        say(figure, end < 0 ? text : text.slice(0, end));
        say(unit, end < 0 ? "" : text.slice(end));
        figure.toggleAttribute("data-long", end < 0 && isLong(text));
        if (below) say(small, batteryText(below));
      }
      day?.name(cells.map(({ node }) => [...node.children].map((part) => part.textContent).join(" ")).join(", "));
    },
  };
}

function nothing({ main }) {
  const text = h("p", { class: "tile-text", dir: "auto" });
  return { node: h("div", { class: "tile-body" }, text), mark: null, update: () => say(text, main ? textOf(main, main.shown) : ""), text: () => (main ? main.name ?? readable(main.id) : "") };
}
