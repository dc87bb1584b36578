// Settle
// SPDX-License-Identifier: Apache-2.0

// Outgoing changes. Of values the newest of each key is sent, once per frame. Presses, steps, scenes and urgent
// values belong to their moment: all of them are sent, in order, within two seconds or not at all.
//
// A request has a name (`Idempotency-Key`) and is sent again under it until it is answered, so that it is executed
// once at most. Its keys wait for the answer, others do not. Sent with a time that has passed, it is withdrawn:
// the gateway then refuses it, whenever it comes.

import { t } from "./words.js";

/** How long a value waits for an unreachable gateway. */
const VALUE_TIMEOUT = 30_000;
/** How long a press, a scene or an urgent value may take to the gateway. */
const MOMENT = 2000;
/**
 * How long the gateway may take to answer before a request is sent again: three round trips, at least the first of
 * these and at most the last, and twice as long with each attempt.
 */
const ANSWER_TIMEOUTS = [500, 4000];
/** How long an urgent value waits for the answer to an earlier press of its key. */
const PATIENCE = 500;
/** How long the gateway surely knows what it has answered; it says 60 s. */
const MEMORY = 55_000;
/** The maximum length of a request of several changes; it stays below the gateway's limit, which is 64 KiB. */
const LENGTH = 20_000;
/** How many requests may wait for answers. A browser opens six connections to one host; see ``Link``. */
const ROOM = { change: 2, urgent: 2 };

/** The prefix of this page's identifiers, different from that of any other page. */
const pageName = (() => {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return "panel-" + Array.from(bytes, (byte) => byte.toString(36).padStart(2, "0")).join("");
})();

/**
 * Calls `listener`: `added(name, id)`, `unsent(name, isUnsent)`, `answer(entry, refusal)`, `dropped(entry, reason)`.
 * The name, which is the `key` of an entry, is that of a key, or `scene:` with the name of a scene.
 */
export class Outbox {
  constructor(link, listener) {
    this.link = link;
    this.listener = listener;
    this.values = new Map();
    this.moments = [];
    this.requests = new Set();
    /** The number of the newest change of each key. */
    this.newest = new Map();
    /** By the id of a change, the urgent one that was sent before its answer. */
    this.overtaken = new Map();
    this.number = 0;
    this.frame = 0;
    this.timer = 0;
    addEventListener("pagehide", () => this.leave());
  }

  get isEmpty() { return this.values.size === 0 && this.moments.length === 0 && this.requests.size === 0; }

  /** Queues a value, such as `{set: 40}`: it replaces the one of its key that is not sent. */
  setValue(key, operation) {
    this.values.delete(key);
    this.values.set(key, this.entry(key, operation));
    this.added(key);
    this.schedule();
  }

  /** Queues what belongs to its moment; `isOrder` for one that is no change: flush or cancel. */
  act(key, operation, { isUrgent = false, isOrder = false } = {}) {
    if (!isOrder) this.values.delete(key);
    const entry = this.entry(key, operation);
    this.moments.push({ ...entry, isMoment: true, isUrgent, isOrder, notAfter: this.link.clock.at(entry.at) + MOMENT });
    if (!isOrder) this.added(key);
    this.link.retryNow();
    this.pump();
  }

  setScene(id) { this.act(`scene:${id}`, { scene: id }); }

  entry(key, operation) {
    this.number += 1;
    return { key, operation, id: `${pageName}-${this.number}`, number: this.number, at: performance.now() };
  }

  added(key) {
    this.newest.set(key, this.number);
    this.listener.added(key, `${pageName}-${this.number}`);
    if (!this.link.isOpen) this.listener.unsent(key, true);
  }

  schedule() {
    if (this.frame || this.values.size === 0 || !this.link.isOpen) return;
    const send = () => {
      this.frame = 0;
      if (this.link.isOpen) this.sendValues();
      this.arm();
    };
    // A hidden page has no animation frames.
    this.frame = document.visibilityState === "visible" ? requestAnimationFrame(send) : setTimeout(send, 50);
  }

  /** Sends what can be sent, and drops what is too late. */
  pump() {
    const now = performance.now();
    this.expire(now);
    if (this.link.isOpen) {
      for (const request of this.requests) if (request.isUncertain && request.retryAt <= now && this.hasRoom(request.way)) this.post(request);
      this.sendMoments(now);
    }
    this.schedule();
    this.arm();
  }

  /** Calls ``pump()`` when something becomes due. */
  arm() {
    const dues = this.moments.map((entry) => entry.at + MOMENT);
    for (const { isUncertain, retryAt, at } of this.requests) dues.push(isUncertain && this.link.isOpen ? retryAt : at + PATIENCE, at + MEMORY);
    for (const entry of this.values.values()) dues.push(entry.at + VALUE_TIMEOUT);
    clearTimeout(this.timer);
    const now = performance.now();
    const next = Math.min(...dues.filter((due) => due > now));
    if (Number.isFinite(next)) this.timer = setTimeout(() => this.pump(), next - now + 1);
  }

  expire(now) {
    const isLate = (entry) => now > entry.at + MOMENT;
    const late = this.moments.filter(isLate);
    this.moments = this.moments.filter((entry) => !isLate(entry));
    for (const entry of late) this.drop(entry, "tooLate");
    for (const [key, entry] of this.values) {
      if (now <= entry.at + VALUE_TIMEOUT) continue;
      this.values.delete(key);
      this.drop(entry, "notReached");
    }
    for (const request of this.requests) {
      // A gateway that has started anew does not know what the one before it has executed.
      const isForgotten = now > request.at + MEMORY || (this.link.isOpen && request.since !== this.link.since);
      if (!request.isUncertain || !isForgotten) continue;
      this.requests.delete(request);
      for (const entry of request.entries) entry.isMoment ? this.drop(entry, "noAnswer") : this.requeue(entry);
    }
  }

  // Requests

  hasRoom(way) {
    const requests = [...this.requests].filter((request) => request.way === way && !request.isUncertain);
    return this.isLeaving || requests.length < ROOM[way];
  }

  /**
   * The keys that wait for an answer. A step is not waited for, because it may wait for its device; and a page that
   * is closed waits for nothing.
   */
  get busyKeys() {
    const requests = [...this.requests].filter((request) => !request.isStep && !this.isLeaving);
    return new Set(requests.flatMap((request) => request.entries.map((entry) => entry.key)));
  }

  sendMoments(now) {
    const urgent = new Set(this.moments.filter((entry) => entry.isUrgent && this.mayOvertake(entry.key, now)).map((entry) => entry.key));
    const busy = this.busyKeys;
    const send = (way, test) => {
      const entries = this.hasRoom(way) ? this.moments.filter(test) : [];
      if (entries.length === 0) return;
      this.moments = this.moments.filter((entry) => !entries.includes(entry));
      if (!this.isLeaving) for (const entry of entries) this.overtake(entry);
      this.begin(entries, way, Math.min(...entries.map((entry) => entry.notAfter)));
    };
    send("urgent", (entry) => urgent.has(entry.key));
    const isFree = (entry) => !urgent.has(entry.key) && !busy.has(entry.key);
    send("change", (entry) => isFree(entry) && !("step" in entry.operation) && !entry.operation.scene);
    send("change", (entry) => isFree(entry) && "step" in entry.operation);
    for (const scene of this.moments.filter((entry) => entry.operation.scene && isFree(entry))) send("change", (entry) => entry === scene);
  }

  sendValues() {
    const busy = this.busyKeys;
    for (const { key } of this.moments) busy.add(key);
    const entries = [];
    let length = 0;
    for (const [key, entry] of this.values) {
      if (busy.has(key)) continue;
      length += line(entry).length;
      if (length > LENGTH && entries.length > 0) break;
      entries.push(entry);
    }
    if (entries.length === 0 || !this.hasRoom("change")) return;
    for (const { key } of entries) this.values.delete(key);
    this.begin(entries, "change", this.link.clock.at(performance.now()) + ANSWER_TIMEOUTS[1]);
  }

  /** Whether an urgent value may be sent although an earlier change of its key is not answered. */
  mayOvertake(key, now) {
    return this.requestsOf(key).every((request) => !request.entries[0].isMoment || now >= request.at + PATIENCE);
  }

  /** Withdraws what is not answered: it must not be executed after what is sent now. */
  overtake(urgent) {
    for (const request of this.requestsOf(urgent.key)) {
      for (const entry of request.entries.filter((other) => other.key === urgent.key)) {
        entry.isOvertaken = true;
        this.overtaken.set(entry.id, urgent);
      }
      request.isWithdrawn = true;
      request.abort.abort();
    }
  }

  /** The requests that are not answered and change a key. */
  requestsOf(key) {
    return [...this.requests].filter((request) => !request.isStep && request.entries.some((entry) => entry.key === key));
  }

  begin(entries, way, notAfter) {
    this.number += 1;
    const { operation } = entries[0];
    const request = {
      entries, way, notAfter, name: `${pageName}-${this.number}`, at: performance.now(), since: this.link.since, attempts: 0,
      isStep: entries.every((entry) => "step" in entry.operation), path: operation.scene ? `v1/scenes/${encodeURIComponent(operation.scene)}` : "v1/changes",
      type: operation.scene ? "application/json" : "application/x-ndjson",
      body: operation.scene ? JSON.stringify({ id: entries[0].id, source: "panel" }) : entries.map(line).join(""),
    };
    this.requests.add(request);
    this.post(request);
  }

  async post(request) {
    request.isUncertain = false;
    request.attempts += 1;
    request.sentAt = performance.now();
    request.abort = new AbortController();
    if (request.attempts === 1) for (const { key } of request.entries) this.listener.unsent(key, false);
    const [least, most] = ANSWER_TIMEOUTS;
    const patience = Math.max(least, 3 * this.link.clock.roundTrip) * 2 ** (request.attempts - 1);
    const timer = setTimeout(() => request.abort.abort(), Math.min(patience, most));
    try {
      const answer = await this.link.fetch(request.path, {
        method: "POST", body: request.body, signal: request.abort.signal, keepalive: this.isLeaving,
        headers: {
          "Content-Type": request.type, "Idempotency-Key": request.name,
          "Settle-Not-After": String(request.isWithdrawn ? 0 : Math.floor(request.notAfter)),
        },
      });
      const text = await answer.text();
      if (this.requests.delete(request)) this.read(text, request);
    } catch (problem) {
      if (this.requests.has(request)) this.failed(request, problem);
    } finally {
      clearTimeout(timer);
      this.pump();
    }
  }

  read(text, { entries, path }) {
    if (path !== "v1/changes") return this.listener.answer(entries[0], null);
    const open = new Map(entries.map((entry) => [entry.id, entry]));
    for (const reply of text.split("\n").filter((part) => part).map((part) => JSON.parse(part))) {
      const entry = reply.error?.line ? entries[reply.error.line - 1] : open.get(reply.id);
      if (!entry) continue;
      const refusal = reply.error?.message ?? (reply.phase === "rejected" ? reply.reason ?? t("refused") : null);
      this.listener.answer(entry, refusal);
    }
  }

  failed(request, problem) {
    const status = problem instanceof Problem ? problem.status : 0;
    if (status >= 400 && status < 500) {
      this.requests.delete(request);
      if (status === 410) return this.refusedAsLate(request, problem);
      if (status === 401) {
        for (const entry of request.entries) this.requeue(entry);
        return this.link.restart();
      }
      const refusal = problem.code === "in_progress" ? null : problem.message;
      for (const entry of request.entries) this.listener.answer(entry, refusal);
      return;
    }
    // It may have arrived all the same. A value is withdrawn, so that a newer one is not followed by it.
    request.isUncertain = true;
    request.isWithdrawn ||= !request.entries[0].isMoment;
    request.retryAt = performance.now() + (request.entries.some((entry) => entry.isOvertaken) ? 0 : Math.min(2000, 100 * 2 ** request.attempts));
    for (const { key } of request.entries) this.listener.unsent(key, true);
    // The stream may not have detected the loss yet.
    if (request.attempts > 2) this.link.restart();
  }

  /** The gateway has not executed the request, and never will. */
  refusedAsLate(request, problem) {
    const now = performance.now();
    this.link.clock.sample(problem.time, request.sentAt, now);
    for (const entry of request.entries) {
      this.overtaken.delete(entry.id);
      if (!entry.isMoment) {
        this.requeue(entry);
        continue;
      }
      // A clock that went wrong is corrected once.
      const notAfter = this.link.clock.at(entry.at) + MOMENT;
      const mayRepeat = request.isWithdrawn ? !entry.isOvertaken : notAfter > entry.notAfter + 20;
      entry.notAfter = notAfter;
      if (mayRepeat && now < entry.at + MOMENT) this.requeue(entry);
      else this.drop(entry, "tooLate");
    }
  }

  /** Queues a change that was not executed, unless there is a newer one. */
  requeue(entry) {
    if (entry.isMoment) this.moments = [...this.moments, entry].sort((a, b) => a.number - b.number);
    else if (this.newest.get(entry.key) === entry.number) this.values.set(entry.key, entry);
  }

  drop(entry, reason) { this.listener.dropped(entry, t(reason)); }

  /** The stream reports a change of this page: it has arrived, and its answer is not waited for. */
  arrived(id) {
    for (const urgent of this.overtaken.values()) urgent.isAccepted ||= urgent.id === id;
    const urgent = this.overtaken.get(id);
    this.overtaken.delete(id);
    // It came all the same, and last: what overtook it is repeated.
    if (urgent?.isAccepted && this.newest.get(urgent.key) === urgent.number) this.act(urgent.key, urgent.operation, { isUrgent: true });
    for (const request of this.requests) {
      const entry = request.entries.find((other) => other.id === id);
      if (!entry) continue;
      entry.hasArrived = true;
      this.listener.answer(entry, null);
      if (!request.entries.every((other) => other.hasArrived)) continue;
      this.requests.delete(request);
      // The answer usually comes now; one that does not would keep its connection.
      setTimeout(() => request.abort.abort(), ANSWER_TIMEOUTS[0]);
      this.pump();
    }
  }

  /** Sends what is queued when the page is closed. */
  leave() {
    if (!this.link.isOpen) return;
    this.isLeaving = true;
    this.sendMoments(performance.now());
    this.sendValues();
    this.isLeaving = false;
  }
}

function line({ key, id, operation }) { return JSON.stringify({ key, ...operation, id, source: "panel" }) + "\n"; }

// What the gateway refuses, and why.

export class Problem extends Error {
  constructor(status, detail, { code = null, time_ms: time = null } = {}) {
    super(detail);
    this.status = status;
    this.code = code;
    /** The gateway's time, if the problem has it. */
    this.time = time;
  }

  /** The problem of a response. */
  static async of(answer) {
    try {
      const problem = await answer.json();
      return new Problem(answer.status, problem.detail ?? problem.title, problem);
    } catch {
      return new Problem(answer.status, `the gateway answered ${answer.status}`);
    }
  }
}
