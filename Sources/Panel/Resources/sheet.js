// Settle
// SPDX-License-Identifier: Apache-2.0

// The open device: all its properties with fine controls, what became of recent changes, its place.

import { h, icon, say, set } from "./dom.js";
import { History } from "./history.js";
import { lightOf, planOf } from "./kinds.js";
import { CommandLog } from "./log.js";
import { PropertyView } from "./rows.js";
import { labelOf } from "./key.js";
import { t } from "./words.js";

export class Sheet {
  constructor(dialog, app) {
    this.dialog = dialog;
    this.app = app;
    this.device = null;
    this.rows = new Map();
    this.title = h("h2", { id: "sheet-title", dir: "auto" });
    this.note = h("p", { class: "quiet", id: "sheet-note" });
    this.star = h("button", { type: "button", class: "round", "aria-pressed": "false", "aria-label": t("favourite"), onclick: () => app.toggleFavourite(this.device) }, icon("star"));
    const move = (name, sign, by) => h("button", { type: "button", class: "round", "aria-label": t(name), onclick: () => app.move(this.device, by) }, icon(sign));
    this.body = h("div", { class: "rows" });
    this.history = new History(app.link);
    this.log = new CommandLog(app);
    dialog.append(h("div", { class: "sheet-inner" },
      h("div", { class: "sheet-head" }, h("div", { class: "sheet-names" }, this.title, this.note),
        move("earlier", "left", -1), move("later", "right", 1), this.star,
        h("button", { type: "button", class: "round", autofocus: true, "aria-label": t("close"), onclick: () => dialog.close() }, icon("close"))),
      this.body, this.history.node, this.log.node));
    dialog.addEventListener("close", () => this.closed());
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }

  open(device) {
    if (this.device === device) return;
    this.forget();
    this.device = device;
    this.plan = planOf(device);
    say(this.title, device.name);
    for (const key of device.keys) {
      this.app.house.follow(key);
      this.rows.set(key, new PropertyView(key, this.app));
    }
    this.body.replaceChildren(...[...this.rows.values()].map((row) => row.node));
    if (!this.dialog.open) this.dialog.showModal();
    const now = performance.now();
    for (const row of this.rows.values()) row.update(now);
    this.update(now);
    this.showLog(this.plan.main ?? device.keys[0]);
  }

  /** Shows the history and the commands of a key below the rows. */
  showLog(key) {
    for (const row of this.rows.values()) set(row.labelButton, "aria-pressed", String(row.key === key));
    this.log.node.hidden = !key || key.isReadOnly;
    if (key) this.log.show(key, labelOf(key));
    this.history.show(key);
  }

  /** Shows a property first. */
  point(key) {
    this.showLog(key);
    this.rows.get(key)?.node.scrollIntoView({ block: "nearest" });
  }

  update(now) {
    const { device } = this;
    if (!device) return;
    set(this.dialog, "data-offline", device.online ? null : "");
    const parts = [device.area, device.isGroup ? t("members", device.members.length) : null, device.online ? null : t("offlineNote")];
    say(this.note, parts.filter((part) => part).join(" · "));
    if (this.plan.kind === "light") this.dialog.style.setProperty("--light", lightOf(this.plan));
    set(this.rows.get(this.plan.brightness)?.node ?? this.body, "data-lit", "");
    set(this.star, "aria-pressed", String(this.app.places.isFavourite(device)));
    if (this.log.key) this.log.update(now);
    this.history.update(now);
  }

  forget() {
    for (const row of this.rows.values()) {
      this.app.rings.views.delete(row);
      if (row.key.held) this.app.hold(row.key, false);
    }
    this.rows.clear();
    this.history.forget();
    this.device = null;
  }

  closed() {
    const device = this.device;
    this.forget();
    this.body.replaceChildren();
    if (device) this.app.sheetClosed(device);
  }
}
