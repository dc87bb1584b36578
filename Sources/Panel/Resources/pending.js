// Settle
// SPDX-License-Identifier: Apache-2.0

// The value that waits after the finger was lifted, with "Send now" and "Cancel", at the end of the page.

import { h, say, vanish } from "./dom.js";
import { labelOf } from "./key.js";
import { spoken } from "./values.js";
import { t } from "./words.js";

/** Quiet periods below this, in milliseconds, are over before a finger gets there. */
const LONG = 1000;

export class PendingBar {
  constructor(node, app) {
    this.node = node;
    this.key = null;
    this.text = h("span", { class: "pending-text", dir: "auto" });
    const order = (name, word, style) => h("button", { type: "button", class: `button ${style}`, onclick: () => app.order(name, this.key) }, t(word));
    this.app = app;
    this.flush = order("flush", "sendNow", "primary");
    node.append(this.text, order("cancel", "cancel", ""), this.flush);
  }

  /** Follows the key that was changed last on this page. */
  follow(key) { this.key = key; }

  update(now) {
    const { key } = this;
    if (!key) return;
    const { name } = key.progress(now);
    const isShown = key.isOwn && !key.held && (name === "waiting" || (name === "settling" && key.span >= LONG));
    const refocus = () => this.app.focus(key);
    vanish(this.node, !isShown, refocus);
    vanish(this.flush, !key.canFlush(now), refocus);
    if (isShown) say(this.text, `${labelOf(key)}: ${spoken(key, key.pending?.value ?? key.shown)}`);
  }
}
