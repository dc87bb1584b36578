// Settle
// SPDX-License-Identifier: Apache-2.0

// The connection to the gateway: a stream of events that reconnects by itself. A hidden page closes it, so
// that many tabs do not use up the connections that a browser opens to one host. Of these six the stream has one,
// questions have one, changes two, and urgent values two.

import { Outbox, Problem } from "./outbox.js";
import { drop, keep, stored } from "./settings.js";
import { t } from "./words.js";

const FIRST_RETRY = 300;
/** The longest wait before an attempt, in milliseconds: of the first ones, and of those after them. */
const RETRIES = { first: 30, soon: 1000, later: 5000 };
/** After this time without data the stream is lost; the gateway sends something every 15 s. */
const SILENCE_TIMEOUT = 40_000;
/** How long an answer to a question may take. */
const READ_TIMEOUT = 5000;
/** How long a page is hidden before it closes its stream. */
const HIDDEN = 2000;
const TOKEN = "settle.token";

/**
 * Calls `listener`: `state(name, reason)`, `snapshot(answer, askedAt)`, `event(object)`, `row(object, askedAt)`,
 * and what ``Outbox`` calls. `askedAt` is when an answer was requested; a row of the stream has none. The states
 * are connecting, live, lost, locked, and asleep while the page is hidden.
 */
export class Link {
  constructor(listener) {
    this.listener = listener;
    this.state = "connecting";
    /** Whether changes can be sent: the stream is open, and the gateway's time is known. */
    this.isOpen = false;
    /** When this run of the gateway began. */
    this.since = null;
    this.clock = new Clock();
    this.reading = Promise.resolve();
    /** The keys whose state is asked for. */
    this.asked = new Set();
    this.token = tokenOfAddress() ?? stored(sessionStorage, TOKEN) ?? stored(localStorage, TOKEN);
    this.outbox = new Outbox(this, listener);
    this.lastEvent = null;
    this.retries = 0;
    this.wakeUp = null;
    this.abort = null;
    this.hiddenTimer = 0;
    this.isWaking = false;
    for (const name of ["online", "pageshow"]) addEventListener(name, () => this.retryNow());
    document.addEventListener("visibilitychange", () => this.visibilityChanged());
    // A page that the browser keeps for "back" would keep its connection too.
    addEventListener("pagehide", () => this.fallAsleep());
  }

  // The stream

  async run() {
    for (;;) {
      try {
        await this.stream();
        if (!this.isPlanned) this.setState("lost", t("streamEnded"));
      } catch (problem) {
        if (problem instanceof Problem && problem.status === 401) {
          this.setState("locked", this.token === null ? null : t("wrongToken"));
          await this.pause(null);
          continue;
        }
        if (!this.isPlanned) this.setState("lost", reasonOf(problem));
      }
      if (this.state === "asleep" && !this.isWaking) await this.pause(null);
      if (this.isWaking || this.state === "asleep") {
        this.isWaking = false;
        this.setState("connecting");
        continue;
      }
      const wait = Math.min(this.retries < RETRIES.first ? RETRIES.soon : RETRIES.later, FIRST_RETRY * 2 ** Math.min(this.retries, 5));
      this.retries += 1;
      await this.pause(wait * (0.75 + Math.random() / 2));
    }
  }

  /** Whether the stream ends because the page is hidden, or was. */
  get isPlanned() { return this.state === "asleep" || this.isWaking; }

  async stream() {
    const abort = new AbortController();
    this.abort = abort;
    let timer = setTimeout(() => abort.abort(), 10_000);
    try {
      const headers = this.lastEvent === null ? {} : { "Last-Event-ID": this.lastEvent };
      const askedAt = performance.now();
      const answer = await this.fetch("v1/events?states=true", { headers, signal: abort.signal });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      // What comes before the snapshot waits for it, except the gateway's time.
      let early = [];
      const events = new EventText((...event) => {
        const [name, , data] = event;
        // A gateway that does not say its time is an older one.
        if (!this.isOpen) this.begin(name === "time" ? JSON.parse(data) : { time_ms: Date.now(), since_ms: null }, askedAt);
        if (early) early.push(event);
        else this.receive(...event);
      });
      while (!this.isOpen) {
        const { value, done } = await reader.read();
        if (done) return;
        events.take(value);
      }
      // The snapshot has the state up to here; the stream has everything after it.
      await this.snapshot(abort.signal);
      this.retries = 0;
      this.setState("live");
      this.readClock();
      this.listener.shared();
      for (const event of early) this.receive(...event);
      early = null;
      for (;;) {
        clearTimeout(timer);
        timer = setTimeout(() => abort.abort(), SILENCE_TIMEOUT);
        if (this.clock.isOld) this.readClock();
        const { value, done } = await reader.read();
        if (done) return;
        events.take(value);
      }
    } finally {
      this.isOpen = false;
      clearTimeout(timer);
      abort.abort();
      this.abort = null;
    }
  }

  /** The head of the stream: changes can be sent. */
  begin({ time_ms: time, since_ms: since }, askedAt) {
    this.since = since;
    this.clock = new Clock();
    this.clock.sample(time, askedAt, performance.now());
    this.isOpen = true;
    this.outbox.pump();
  }

  async readClock() {
    try {
      let askedAt;
      const { time_ms: time } = await this.get("healthz", () => { askedAt = performance.now(); });
      this.clock.sample(time, askedAt, performance.now());
    } catch {
      // The next data of the stream asks again.
    }
  }

  receive(name, id, data) {
    if (id !== null) this.lastEvent = id;
    if (data === "") return;
    if (name === "message") {
      const event = JSON.parse(data);
      this.outbox.arrived(event.id);
      return this.listener.event(event);
    }
    if (name === "state") return this.listener.row(JSON.parse(data));
    if (name === "panel") this.listener.shared();
    if (name === "gap" || name === "devices" || name === "broker") this.refresh();
  }

  /** Closes the stream; it opens again at once, unless the page is hidden. */
  restart() { this.abort?.abort(); }

  async snapshot(signal) {
    const askedAt = performance.now();
    this.listener.snapshot(await (await this.fetch("v1/devices", { signal })).json(), askedAt);
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
        await this.snapshot(AbortSignal.timeout(READ_TIMEOUT));
      } while (this.refreshAgain);
    } catch {
      // When the gateway is gone, the stream reconnects and reads everything again.
    } finally {
      this.refreshing = false;
    }
  }

  /** Reads the state of one key. */
  async refreshKey(key) {
    if (this.asked.has(key)) return;
    this.asked.add(key);
    try {
      let askedAt;
      const row = await this.get(`v1/devices/${key}`, () => { askedAt = performance.now(); });
      this.listener.row(row, askedAt);
    } catch {
      // As in refresh().
    } finally {
      this.asked.delete(key);
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
    if (this.state === "lost" || this.state === "asleep") this.wakeUp?.();
  }

  visibilityChanged() {
    clearTimeout(this.hiddenTimer);
    if (document.visibilityState === "visible") {
      this.isWaking = this.state === "asleep";
      this.retryNow();
      return;
    }
    this.hiddenTimer = setTimeout(() => this.fallAsleep(), HIDDEN);
  }

  fallAsleep() {
    if (this.state !== "live") return;
    if (!this.outbox.isEmpty) {
      this.hiddenTimer = setTimeout(() => this.fallAsleep(), HIDDEN);
      return;
    }
    this.setState("asleep");
    this.restart();
  }

  // Requests

  unlock(token, remember) {
    this.token = token;
    for (const store of [sessionStorage, localStorage]) drop(store, TOKEN);
    keep(remember ? localStorage : sessionStorage, TOKEN, token);
    this.wakeUp?.();
  }

  /** Fetches with the token; throws a ``Problem`` if the gateway refuses. */
  async fetch(path, options = {}) {
    const headers = { ...options.headers };
    if (this.token !== null) headers.Authorization = `Bearer ${this.token}`;
    const answer = await fetch(path, { cache: "no-store", ...options, headers });
    if (!answer.ok) throw await Problem.of(answer);
    return answer;
  }

  /** Asks the gateway, one question after the other; calls `onTurn` when this one is asked. */
  async get(path, onTurn = () => {}) {
    const before = this.reading;
    let end;
    this.reading = new Promise((resolve) => { end = resolve; });
    await before;
    onTurn();
    try {
      return await (await this.fetch(path, { signal: AbortSignal.timeout(READ_TIMEOUT) })).json();
    } finally {
      end();
    }
  }
}

/** The token of `#token=…`, which a QR code leads to; it leaves the address bar at once. */
function tokenOfAddress() {
  if (!location.hash.startsWith("#token=")) return null;
  const token = decodeURIComponent(location.hash.slice(7));
  history.replaceState(null, "", location.pathname + location.search);
  keep(sessionStorage, TOKEN, token);
  return token;
}

function reasonOf(problem) {
  if (problem instanceof Problem) return problem.message;
  return navigator.onLine === false ? t("browserOffline") : t("unreachable");
}

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

// The gateway's time, as far as this page knows it.

/** How long a sample counts, in milliseconds: two clocks drift apart. */
const LIFETIME = 300_000;

export class Clock {
  constructor() {
    this.offset = 0;
    this.roundTrip = Infinity;
    this.sampledAt = -Infinity;
  }

  /**
   * The gateway said `time` between two moments; of several samples the one with the shortest way counts, unless
   * a later one contradicts it.
   */
  sample(time, askedAt, receivedAt) {
    const roundTrip = receivedAt - askedAt;
    const isPossible = this.offset >= time - receivedAt && this.offset <= time - askedAt;
    if (roundTrip > this.roundTrip && isPossible && !this.isOld) return;
    this.offset = time - (askedAt + receivedAt) / 2;
    this.roundTrip = roundTrip;
    this.sampledAt = receivedAt;
  }

  get isOld() { return performance.now() - this.sampledAt > LIFETIME; }

  /** The gateway's time at a moment of performance.now(), in milliseconds. */
  at(moment) { return moment + this.offset; }
}
