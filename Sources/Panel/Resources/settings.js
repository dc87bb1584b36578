// Settle
// SPDX-License-Identifier: Apache-2.0

// The choices of this browser: theme, language, wall display, and signing in another device.

import { h, icon } from "./dom.js";
import { lanesSection } from "./lanes.js";
import { LANGUAGES, t } from "./words.js";
import { qrSymbol } from "./qr.js";

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
    ];
    if (app.link.token !== null) parts.push(this.share(app.link.token));
    dialog.showModal();
    dialog.replaceChildren(h("div", { class: "sheet-inner" }, ...parts, lanesSection(app.link, dialog)));
  }

  /** A code that another device scans to sign in. */
  share(token) {
    const address = `${location.origin}${location.pathname}#token=${encodeURIComponent(token)}`;
    return h("details", { class: "setting share" }, h("summary", {}, t("share")), h("p", { class: "quiet" }, t("shareHint")), qrSymbol(address, t("share")));
  }
}

/** Sets the theme: light, dark, or that of the system. */
export function showTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
