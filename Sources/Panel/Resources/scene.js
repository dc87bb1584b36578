// Settle
// SPDX-License-Identifier: Apache-2.0

// The button of a scene, and what became of its newest press.

import { h, hide, say, set } from "./dom.js";
import { FADE } from "./key.js";
import { Mark } from "./mark.js";
import { readable } from "./values.js";
import { t } from "./words.js";

export class SceneView {
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
