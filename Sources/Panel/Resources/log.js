// Settle
// SPDX-License-Identifier: Apache-2.0

// The newest commands of all devices: when, what, who asked for it, and how it ended. Kept in memory since the page was opened.

import { h } from "./dom.js";
import { labelOf } from "./house.js";
import { spoken } from "./values.js";
import { locale, t } from "./words.js";

/** The maximum number of commands. */
const MOST = 200;
/** The least time, in milliseconds, between two drawings. */
const PACE = 250;
/** The phases with which a command appears. What was replaced before it was sent is none. */
const BEGINS = new Set(["sending", "unchanged", "failed", "expired", "rejected"]);

export class Log {
  constructor() {
    this.commands = new Map();
    this.timer = null;
  }

  /** Takes an event of a key, which happened at a time of the gateway's clock. */
  take(key, { id, phase, value, source, by, at, reason }) {
    const name = `${id} ${key.key}`;
    const known = this.commands.get(name);
    if (known) Object.assign(known, { phase, reason });
    else if (BEGINS.has(phase)) this.commands.set(name, { key, phase, value, at, reason, source: by ?? source });
    else return;
    if (this.commands.size > MOST) this.commands.delete(this.commands.keys().next().value);
    if (this.list?.checkVisibility()) this.timer ??= setTimeout(() => this.draw(), PACE);
  }

  /** A part of a dialog that follows the commands while it is open. */
  section() {
    this.list = h("ol", { class: "log", "aria-label": t("commandsList") });
    return h("details", { class: "setting", ontoggle: () => this.draw() }, h("summary", {}, t("newestCommands")), this.list);
  }

  draw() {
    this.timer = null;
    const lines = [...this.commands.values()].reverse().map(({ key, phase, value, at, reason, source }) => h("li", { class: /^(failed|expired|rejected)$/.test(phase) ? "bad" : null },
      h("span", { class: "log-time" }, new Date(at).toLocaleTimeString(locale)), h("span", { dir: "auto" }, labelOf(key)),
      h("span", { class: "log-value", dir: "auto" }, spoken(key, value)),
      h("span", { class: "log-end" }, `${t(phase === "rejected" ? "refused" : phase)}${reason ? `: ${reason}` : ""} · ${source}`)));
    this.list.replaceChildren(...(lines.length > 0 ? lines : [h("li", { class: "quiet" }, t("noCommand"))]));
  }
}
