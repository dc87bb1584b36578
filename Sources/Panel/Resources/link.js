// Settle
// SPDX-License-Identifier: Apache-2.0

// The connection to the gateway: a stream of events that reconnects by itself, and changes that are sent
// at most once per frame, the newest of each key.

const FIRST_RETRY = 300;
const SLOWEST_RETRY = 5000;
/** After this time without data the stream is lost; the gateway sends something every 15 s. */
const SILENCE_TIMEOUT = 40_000;
/** How long a change waits for an unreachable gateway. */
const CHANGE_TIMEOUT = 30_000;
/** The maximum number of changes in a request, which stays below the gateway's limits. */
const BATCH = 200;
const TOKEN = "settle.token";

/** The prefix of this page's identifiers, different from that of any other page. */
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
 * Calls `listener`: `state(name, reason)`, `snapshot(answer)`, `event(object)`, `row(object)`,
 * `sent(key, id)`, `answer(id, key, refusal)`, `unsent(keys)`, `dropped(key, value)`.
 */
export class Link {
  constructor(listener) {
    this.listener = listener;
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
    for (const name of ["online", "pageshow"]) addEventListener(name, () => this.retryNow());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.retryNow();
    });
    addEventListener("pagehide", () => this.flush());
  }

  // The stream

  async run() {
    for (;;) {
      try {
        await this.stream();
        this.setState("lost", "The gateway ended the connection");
      } catch (problem) {
        if (problem instanceof Problem && problem.status === 401) {
          this.setState("locked", this.token === null ? null : "That token is wrong.");
          await this.pause(null);
          continue;
        }
        this.setState("lost", reasonOf(problem));
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
      // The snapshot has the state up to here; the stream has everything after it.
      this.listener.snapshot(await this.get("v1/devices", abort.signal));
      this.retries = 0;
      this.setState("live");
      this.schedule();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const events = new EventText((name, id, data) => this.receive(name, id, data));
      for (;;) {
        clearTimeout(timer);
        timer = setTimeout(() => abort.abort(), SILENCE_TIMEOUT);
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

  receive(name, id, data) {
    if (id !== null) this.lastEvent = id;
    if (name === "message") return this.listener.event(JSON.parse(data));
    if (name === "state") return this.listener.row(JSON.parse(data));
    if (name === "gap" || name === "devices" || name === "broker") this.refresh();
  }

  /** Reads all devices again; calls during a read cause one more read. */
  async refresh() {
    if (this.refreshing) {
      this.refreshAgain = true;
      return;
    }
    this.refreshing = true;
    try {
      do {
        this.refreshAgain = false;
        this.listener.snapshot(await this.get("v1/devices"));
      } while (this.refreshAgain);
    } catch {
      // When the gateway is gone, the stream reconnects and reads everything again.
    } finally {
      this.refreshing = false;
    }
  }

  /** Reads the state of one key. */
  async refreshKey(key) {
    try {
      this.listener.row(await this.get(`v1/devices/${key}`));
    } catch {
      // As in refresh().
    }
  }

  setState(state, reason = null) {
    this.state = state;
    this.listener.state(state, reason);
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

  /** Ends the wait before the next connection attempt. */
  retryNow() {
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

  /** Queues a change: `{set}`, `{step}` or `{toggle}`. The newest of each key is sent with the next frame. */
  change(key, operation) {
    const waiting = this.outbox.get(key);
    const sum = waiting && "step" in waiting.operation && "step" in operation
      ? { step: waiting.operation.step + operation.step } : operation;
    this.outbox.delete(key);
    this.number += 1;
    this.outbox.set(key, { operation: sum, id: `${pageName}-${this.number}`, at: performance.now() });
    this.listener.sent(key, `${pageName}-${this.number}`);
    if (this.state !== "live") this.listener.unsent([key]);
    this.schedule();
  }

  schedule() {
    if (this.frame || this.isPosting || this.outbox.size === 0 || this.state !== "live") return;
    // A hidden page has no animation frames.
    this.frame = document.visibilityState === "visible"
      ? requestAnimationFrame(() => this.sendQueued()) : setTimeout(() => this.sendQueued(), 50);
  }

  async sendQueued() {
    this.frame = 0;
    if (this.isPosting || this.state !== "live") return;
    const now = performance.now();
    const batch = [];
    for (const [key, entry] of this.outbox) {
      if (batch.length >= BATCH) break;
      this.outbox.delete(key);
      if (now - entry.at > CHANGE_TIMEOUT) this.listener.dropped(key, entry);
      else batch.push([key, entry]);
    }
    // Steps and toggles may wait for a device's state; sets are posted apart so that they do not.
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
      for (const [key, entry] of batch) this.listener.sent(key, entry.id);
      const answer = await fetch("v1/changes", {
        method: "POST", headers: this.headers({ "Content-Type": "application/x-ndjson" }), body: lines(batch),
        signal: AbortSignal.timeout(10_000),
      });
      if (!answer.ok) throw await problemOf(answer);
      this.read(await answer.text(), batch);
    } catch (problem) {
      const isRefused = problem instanceof Problem && problem.status < 500 && problem.status !== 401;
      for (const [key, entry] of batch) {
        if (isRefused) this.listener.answer(entry.id, key, problem.message);
        // A change without an answer may have arrived. A set is safe to repeat, a step is not.
        else if (!this.outbox.has(key) && "step" in entry.operation) this.listener.dropped(key, entry);
        else if (!this.outbox.has(key)) this.outbox.set(key, entry);
      }
      if (!isRefused) {
        this.listener.unsent(batch.map(([key]) => key));
        // The stream may not have detected the loss yet.
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
      this.listener.answer(id, open.get(id), refusal);
    }
  }

  /** Sends the queued changes when the page is closed. */
  flush() {
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

/** Parses server-sent events from pieces of any size. */
export class EventText {
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
      if (this.data.length) this.emit(this.name, this.id, this.data.join("\n"));
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

// A browser may deny access to storage.

function stored(store) {
  try { return store.getItem(TOKEN); } catch { return null; }
}

function keep(store, token) {
  try { store.setItem(TOKEN, token); } catch { /* The page asks for the token again. */ }
}

function drop(store) {
  try { store.removeItem(TOKEN); } catch { /* There is no storage. */ }
}
