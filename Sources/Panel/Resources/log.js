// Settle
// SPDX-License-Identifier: Apache-2.0

// The newest commands of a key as a list, with how each ended, and what can be done with the one that waits.

import { h, say, set } from "./dom.js";
import { ENDS } from "./key.js";
import { changes, commands, duration, spoken } from "./values.js";
import { t } from "./words.js";

const LISTED = 8;

export class CommandLog {
  constructor(app) {
    this.app = app;
    this.key = null;
    this.title = h("h3", { class: "log-title" });
    this.policy = h("p", { class: "quiet" });
    this.flush = h("button", { type: "button", class: "button primary", onclick: () => app.order("flush", this.key) }, t("sendNow"));
    this.cancel = h("button", { type: "button", class: "button", onclick: () => app.order("cancel", this.key) }, t("cancel"));
    this.list = h("ol", { class: "log", "aria-label": t("commandsList") });
    this.node = h("div", { class: "log-part" }, this.title, this.policy, h("div", { class: "sheet-buttons" }, this.flush, this.cancel), this.list);
  }

  show(key, label) {
    this.key = key;
    say(this.title, label);
    const most = key.maxWait === null ? "" : t("atMost", duration(key.maxWait));
    const apart = key.minInterval === 0 ? "" : t("apart", duration(key.minInterval));
    say(this.policy, key.delay === 0 ? t("immediately", apart) : t("whenQuiet", duration(key.delay), most, apart));
    this.shown = "";
    this.update(performance.now());
  }

  update(now) {
    const { key } = this;
    const isOpen = key.isOpen(now);
    const hadFocus = this.node.contains(document.activeElement);
    set(this.cancel, "disabled", isOpen ? null : "");
    set(this.flush, "disabled", isOpen && key.canFlush(now) ? null : "");
    // A button that is disabled has lost the focus.
    if (hadFocus && document.activeElement.disabled !== false) this.app.focus(key);
    const sent = key.history.filter((event) => (event.phase === "sending" && event.attempt === 1) || event.phase === "unchanged").slice(-LISTED).reverse();
    const lines = sent.map((command) => {
      const later = key.history.filter((event) => event.id === command.id);
      const end = later.findLast((event) => ENDS.has(event.phase))?.phase ?? null;
      const reason = later.findLast((event) => event.reason)?.reason ?? null;
      return { command, end, reason };
    });
    const shown = lines.map(({ command, end, reason }) => `${command.id}${end}${reason}`).join() || "none";
    if (shown === this.shown) return;
    this.shown = shown;
    this.list.replaceChildren(...lines.map(({ command, end, reason }) => this.line(command, end, reason)));
    if (lines.length === 0) this.list.append(h("li", { class: "quiet" }, t("noCommand")));
  }

  line(command, end, reason) {
    const isBad = end === "failed" || end === "expired";
    const time = new Date(performance.timeOrigin + command.at).toLocaleTimeString();
    return h("li", { class: isBad ? "bad" : null },
      h("span", { class: "log-time" }, time), h("span", { class: "log-value", dir: "auto" }, spoken(this.key, command.value)),
      h("span", { class: "log-tally" }, `${changes(command.collapsed + 1)} → ${commands(command.phase === "unchanged" ? 0 : 1)}`),
      h("span", { class: "log-end" }, t(end ?? (this.key.canConfirm ? "underWay" : "sent")) + (reason ? `: ${reason}` : "")));
  }
}
