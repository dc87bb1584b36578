// Settle
// SPDX-License-Identifier: Apache-2.0

// The way to the gateway: one stream of events that comes back by itself, and changes that leave
// at most once per frame, the newest of each key.

const FIRST_RETRY = 300;
const SLOWEST_RETRY = 5000;
/** The gateway says something every 15 s. */
const SILENCE = 40_000;
/** How long a change waits for a gateway that cannot be reached. */
const PATIENCE = 30_000;
/** The gateway takes longer lines and bodies; a frame has far less. */
const BATCH = 200;
const TOKEN = "settle.token";

/** Tells this page's changes from those of any other. */
const pageName = (() => {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return "panel-" + Array.from(bytes, (byte) => byte.toString(36).padStart(2, "0")).join("");
})();

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/**
 * `ears` hears: `state(name, reason)`, `snapshot(answer)`, `event(object)`, `row(object)`,
 * `sent(key, id)`, `answer(id, key, refusal)`, `unsent(keys)`, `dropped(key, value)`.
 */
export class Link {
  constructor(ears) {
    this.ears = ears;
    this.state = "connecting";
    this.token = stored(sessionStorage) ?? stored(localStorage);
    this.outbox = new Map();
    this.isPosting = false;
    this.frame = 0;
    this.number = 0;
    this.lastEvent = null;
    this.retries = 0;
    this.wakeUp = null;
    this.abort = null;
    for (const name of ["online", "pageshow"]) addEventListener(name, () => this.hurry());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.hurry();
    });
    addEventListener("pagehide", () => this.flushOut());
  }

  // The stream

  async run() {
    for (;;) {
      try {
        await this.stream();
        this.tell("lost", "The gateway ended the connection");
      } catch (problem) {
        if (problem instanceof Problem && problem.status === 401) {
          this.tell("locked", this.token === null ? null : "That token is wrong.");
          await this.pause(null);
          continue;
        }
        this.tell("lost", reasonOf(problem));
      }
      const wait = Math.min(SLOWEST_RETRY, FIRST_RETRY * 2 ** Math.min(this.retries, 5));
      this.retries += 1;
      await this.pause(wait * (0.75 + Math.random() / 2));
    }
  }

  async stream() {
    const abort = new AbortController();
    this.abort = abort;
    let timer = setTimeout(() => abort.abort(), 10_000);
    try {
      const headers = this.headers();
      if (this.lastEvent !== null) headers["Last-Event-ID"] = this.lastEvent;
      const answer = await fetch("v1/events?states=true", { headers, signal: abort.signal, cache: "no-store" });
      if (!answer.ok) throw await problemOf(answer);
      // What happens from here on comes by the stream; what was before, by the snapshot.
      this.ears.snapshot(await this.get("v1/devices", abort.signal));
      this.retries = 0;
      this.tell("live");
      this.schedule();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const events = new EventText((name, id, data) => this.hear(name, id, data));
      for (;;) {
        clearTimeout(timer);
        timer = setTimeout(() => abort.abort(), SILENCE);
        const { value, done } = await reader.read();
        if (done) return;
        events.take(value);
      }
    } finally {
      clearTimeout(timer);
      abort.abort();
      this.abort = null;
    }
  }

  hear(name, id, data) {
    if (id !== null) this.lastEvent = id;
    if (name === "message") return this.ears.event(JSON.parse(data));
    if (name === "state") return this.ears.row(JSON.parse(data));
    if (name === "gap" || name === "devices" || name === "broker") this.refresh();
  }

  /** Reads everything anew; once at a time. */
  async refresh() {
    if (this.refreshing) {
      this.refreshAgain = true;
      return;
    }
    this.refreshing = true;
    try {
      do {
        this.refreshAgain = false;
        this.ears.snapshot(await this.get("v1/devices"));
      } while (this.refreshAgain);
    } catch {
      // The stream notices a gateway that is gone, and everything is read again when it is back.
    } finally {
      this.refreshing = false;
    }
  }

  /** Reads where one key stands. */
  async look(key) {
    try {
      this.ears.row(await this.get(`v1/devices/${key}`));
    } catch {
      // As above.
    }
  }

  tell(state, reason = null) {
    this.state = state;
    this.ears.state(state, reason);
  }

  pause(milliseconds) {
    return new Promise((resolve) => {
      const timer = milliseconds === null ? null : setTimeout(resolve, milliseconds);
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    }).finally(() => { this.wakeUp = null; });
  }

  /** Tries again at once if it is waiting to. */
  hurry() {
    if (this.state === "lost") this.wakeUp?.();
  }

  unlock(token, remember) {
    this.token = token;
    for (const store of [sessionStorage, localStorage]) drop(store);
    keep(remember ? localStorage : sessionStorage, token);
    this.wakeUp?.();
  }

  headers(more = {}) {
    return this.token === null ? more : { ...more, Authorization: `Bearer ${this.token}` };
  }

  async get(path, signal) {
    const answer = await fetch(path, { headers: this.headers(), signal, cache: "no-store" });
    if (!answer.ok) throw await problemOf(answer);
    return answer.json();
  }

  async post(path, body) {
    const answer = await fetch(path, {
      method: "POST", headers: this.headers({ "Content-Type": "application/json" }), body: JSON.stringify(body),
    });
    if (!answer.ok) throw await problemOf(answer);
    return answer.json();
  }

  // Changes

  /** Asks for a change: `{set}`, `{step}` or `{toggle}`; the newest of a key leaves with the frame. */
  change(key, operation) {
    const waiting = this.outbox.get(key);
    const sum = waiting && "step" in waiting.operation && "step" in operation
      ? { step: waiting.operation.step + operation.step } : operation;
    this.outbox.delete(key);
    this.number += 1;
    this.outbox.set(key, { operation: sum, id: `${pageName}-${this.number}`, at: performance.now() });
    this.ears.sent(key, `${pageName}-${this.number}`);
    if (this.state !== "live") this.ears.unsent([key]);
    this.schedule();
  }

  schedule() {
    if (this.frame || this.isPosting || this.outbox.size === 0 || this.state !== "live") return;
    // A page that is not seen has no frames.
    this.frame = document.visibilityState === "visible"
      ? requestAnimationFrame(() => this.leave()) : setTimeout(() => this.leave(), 50);
  }

  async leave() {
    this.frame = 0;
    if (this.isPosting || this.state !== "live") return;
    const now = performance.now();
    const batch = [];
    for (const [key, entry] of this.outbox) {
      if (batch.length >= BATCH) break;
      this.outbox.delete(key);
      if (now - entry.at > PATIENCE) this.ears.dropped(key, entry);
      else batch.push([key, entry]);
    }
    // What the gateway counts may have to wait for a device's state: nothing else waits for that.
    const counted = batch.filter(([, entry]) => !("set" in entry.operation));
    const sets = batch.filter(([, entry]) => "set" in entry.operation);
    if (counted.length > 0) this.send(counted);
    if (sets.length === 0) return;
    this.isPosting = true;
    await this.send(sets);
    this.isPosting = false;
    this.schedule();
  }

  async send(batch) {
    try {
      for (const [key, entry] of batch) this.ears.sent(key, entry.id);
      const answer = await fetch("v1/changes", {
        method: "POST", headers: this.headers({ "Content-Type": "application/x-ndjson" }), body: lines(batch),
        signal: AbortSignal.timeout(10_000),
      });
      if (!answer.ok) throw await problemOf(answer);
      this.read(await answer.text(), batch);
    } catch (problem) {
      const isRefused = problem instanceof Problem && problem.status < 500 && problem.status !== 401;
      for (const [key, entry] of batch) {
        if (isRefused) this.ears.answer(entry.id, key, problem.message);
        // What has no answer may have arrived; it is absolute, so once more does no harm. A step is not.
        else if (!this.outbox.has(key) && "step" in entry.operation) this.ears.dropped(key, entry);
        else if (!this.outbox.has(key)) this.outbox.set(key, entry);
      }
      if (!isRefused) {
        this.ears.unsent(batch.map(([key]) => key));
        // The stream may not have noticed yet.
        this.abort?.abort();
      }
    }
  }

  read(text, batch) {
    const open = new Map(batch.map(([key, entry]) => [entry.id, key]));
    const replies = text.split("\n").filter((line) => line).map((line) => JSON.parse(line));
    for (const reply of replies) {
      const id = reply.id ?? (reply.error?.line ? batch[reply.error.line - 1]?.[1].id : null);
      if (!open.has(id)) continue;
      const refusal = reply.error?.message ?? (reply.phase === "rejected" ? reply.reason ?? "refused" : null);
      this.ears.answer(id, open.get(id), refusal);
    }
  }

  /** The page goes away: what the finger asked for last still leaves. */
  flushOut() {
    if (this.outbox.size === 0 || this.state !== "live") return;
    const batch = [...this.outbox];
    this.outbox.clear();
    fetch("v1/changes", {
      method: "POST", keepalive: true, headers: this.headers({ "Content-Type": "application/x-ndjson" }), body: lines(batch),
    }).catch(() => {});
  }
}

function lines(batch) {
  return batch.map(([key, entry]) =>
    JSON.stringify({ key, ...entry.operation, id: entry.id, source: "panel" }) + "\n").join("");
}

/** Server-sent events as they come, in pieces of any size. */
export class EventText {
  constructor(tell) {
    this.tell = tell;
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
      if (this.data.length) this.tell(this.name, this.id, this.data.join("\n"));
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

async function problemOf(answer) {
  try {
    const problem = await answer.json();
    return new Problem(answer.status, problem.detail ?? problem.title);
  } catch {
    return new Problem(answer.status, `the gateway answered ${answer.status}`);
  }
}

function reasonOf(problem) {
  if (problem instanceof Problem) return problem.message;
  return navigator.onLine === false ? "This device is offline" : "The gateway cannot be reached";
}

// A browser may refuse to keep anything.

function stored(store) {
  try { return store.getItem(TOKEN); } catch { return null; }
}

function keep(store, token) {
  try { store.setItem(TOKEN, token); } catch { /* It is asked for again. */ }
}

function drop(store) {
  try { store.removeItem(TOKEN); } catch { /* Nothing was kept. */ }
}
