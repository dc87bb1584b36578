// Settle
// SPDX-License-Identifier: Apache-2.0

// Server-sent events from pieces of text of any size.

export class EventText {
  /** Calls `emit(name, id, data)` for each event, and for an id alone, with empty data. */
  constructor(emit) {
    this.emit = emit;
    this.rest = "";
    this.clear();
  }

  clear() {
    this.name = "message";
    this.id = null;
    this.data = [];
  }

  take(text) {
    const parts = (this.rest + text).split("\n");
    this.rest = parts.pop();
    for (const part of parts) this.line(part.endsWith("\r") ? part.slice(0, -1) : part);
  }

  line(text) {
    if (text === "") {
      if (this.data.length || this.id !== null) this.emit(this.name, this.id, this.data.join("\n"));
      return this.clear();
    }
    const colon = text.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "event") this.name = value;
    if (name === "id") this.id = value;
    if (name === "data") this.data.push(value);
  }
}
