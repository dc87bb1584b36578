// Settle
// SPDX-License-Identifier: Apache-2.0

// What the browser keeps. A browser may deny access to storage: then nothing is kept.

export function stored(store, name) {
  try { return store.getItem(name); } catch { return null; }
}

export function keep(store, name, text) {
  try { store.setItem(name, text); } catch { /* Kept until the page is closed. */ }
}

export function drop(store, name) {
  try { store.removeItem(name); } catch { /* There is no storage. */ }
}

/** The choices of this browser: theme, language, favourites, the order of devices. */
export class Choices {
  constructor() {
    this.name = "settle.choices";
    this.values = {};
    try {
      const values = JSON.parse(stored(localStorage, this.name) ?? "{}");
      if (values && typeof values === "object") this.values = values;
    } catch {
      // An unreadable text is replaced at the next choice.
    }
  }

  get(name, otherwise) { return this.values[name] ?? otherwise; }

  set(name, value) {
    this.values[name] = value;
    keep(localStorage, this.name, JSON.stringify(this.values));
  }
}
