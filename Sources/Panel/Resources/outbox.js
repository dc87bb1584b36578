// Settle
// SPDX-License-Identifier: Apache-2.0

// Outgoing changes, sent at most once per frame, the newest of each key.

import { Problem } from "./problem.js";
import { t } from "./words.js";

/** How long a change waits for an unreachable gateway. */
const CHANGE_TIMEOUT = 30_000;
/** How long the gateway may take to answer. */
const ANSWER_TIMEOUT = 10_000;
/** How long after a reconnection the stream may still report that a change had arrived. */
const REPLAY = 400;
/** The maximum number of changes in a request, which stays below the gateway's limits. */
const BATCH = 200;

/** The prefix of this page's identifiers, different from that of any other page. */
const pageName = (() => {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return "panel-" + Array.from(bytes, (byte) => byte.toString(36).padStart(2, "0")).join("");
})();

/**
 * Calls `listener`: `sent(key, id)`, `answer(id, key, refusal)`, `unsent(keys)`, `dropped(key, id, reason)`.
 */
export class Outbox {
  constructor(link, listener) {
    this.link = link;
    this.listener = listener;
    this.entries = new Map();
    this.isPosting = false;
    this.frame = 0;
    this.number = 0;
    addEventListener("pagehide", () => this.flush());
  }

  get isEmpty() { return this.entries.size === 0 && !this.isPosting; }

  /** Queues a change, such as `{set: 40}`. The newest of each key is sent with the next frame. */
  add(key, operation) {
    const waiting = this.entries.get(key);
    const sum = waiting && "step" in waiting.operation && "step" in operation
      ? { step: waiting.operation.step + operation.step } : operation;
    this.entries.delete(key);
    this.number += 1;
    const id = `${pageName}-${this.number}`;
    this.entries.set(key, { operation: sum, id, at: performance.now() });
    this.listener.sent(key, id);
    if (this.link.state !== "live") this.listener.unsent([key]);
    this.schedule();
  }

  /** The stream is back. What may have arrived is sent again only if the stream does not report it. */
  resume() {
    const isUncertain = [...this.entries.values()].some((entry) => entry.mayHaveArrived);
    if (!isUncertain) return this.schedule();
    setTimeout(() => {
      // Events that are repeated come without the states that they led to.
      this.link.refresh();
      this.schedule();
    }, REPLAY);
  }

  /** The stream reports a change of this page: it has arrived. */
  arrived(key, id) {
    if (this.entries.get(key)?.id === id) this.entries.delete(key);
  }

  schedule() {
    if (this.frame || this.isPosting || this.entries.size === 0 || this.link.state !== "live") return;
    // A hidden page has no animation frames.
    this.frame = document.visibilityState === "visible"
      ? requestAnimationFrame(() => this.sendQueued()) : setTimeout(() => this.sendQueued(), 50);
  }

  async sendQueued() {
    this.frame = 0;
    if (this.isPosting || this.link.state !== "live") return;
    const now = performance.now();
    const batch = [];
    for (const [key, entry] of this.entries) {
      if (batch.length >= BATCH) break;
      this.entries.delete(key);
      if (now - entry.at > CHANGE_TIMEOUT) this.drop(key, entry);
      // A set is safe to repeat; a step or a press of a button is not.
      else if (entry.mayHaveArrived && !isRepeatable(entry)) this.drop(key, entry);
      else batch.push([key, entry]);
    }
    // Steps and toggles may wait for a device's state; sets are posted apart so that they do not.
    const isSet = ([, entry]) => "set" in entry.operation;
    const computed = batch.filter((change) => !isSet(change));
    const sets = batch.filter(isSet);
    if (computed.length > 0) this.send(computed);
    if (sets.length === 0) return;
    this.isPosting = true;
    await this.send(sets);
    this.isPosting = false;
    this.schedule();
  }

  drop(key, entry) {
    this.listener.dropped(key, entry.id, t(entry.mayHaveArrived ? "noAnswer" : "notReached"));
  }

  async send(batch) {
    try {
      for (const [key, entry] of batch) this.listener.sent(key, entry.id);
      const answer = await this.link.fetch("v1/changes", {
        method: "POST", headers: { "Content-Type": "application/x-ndjson" }, body: lines(batch),
        signal: AbortSignal.timeout(ANSWER_TIMEOUT),
      });
      this.read(await answer.text(), batch);
    } catch (problem) {
      this.failed(batch, problem);
    }
  }

  failed(batch, problem) {
    const isRefused = problem instanceof Problem && problem.status < 500 && problem.status !== 401;
    if (isRefused) {
      for (const [key, entry] of batch) this.listener.answer(entry.id, key, problem.message);
      return;
    }
    for (const [key, entry] of batch) {
      // Without an answer it may have arrived all the same.
      entry.mayHaveArrived = !(problem instanceof Problem);
      if (!this.entries.has(key)) this.entries.set(key, entry);
    }
    this.listener.unsent(batch.map(([key]) => key));
    // The stream may not have detected the loss yet.
    this.link.restart();
  }

  read(text, batch) {
    const open = new Map(batch.map(([key, entry]) => [entry.id, key]));
    const replies = text.split("\n").filter((line) => line).map((line) => JSON.parse(line));
    for (const reply of replies) {
      const id = reply.id ?? (reply.error?.line ? batch[reply.error.line - 1]?.[1].id : null);
      if (!open.has(id)) continue;
      const refusal = reply.error?.message ?? (reply.phase === "rejected" ? reply.reason ?? t("refused") : null);
      this.listener.answer(id, open.get(id), refusal);
    }
  }

  /** Sends the queued changes when the page is closed. */
  flush() {
    if (this.entries.size === 0 || this.link.state !== "live") return;
    const batch = [...this.entries];
    this.entries.clear();
    this.link.fetch("v1/changes", {
      method: "POST", keepalive: true, headers: { "Content-Type": "application/x-ndjson" }, body: lines(batch),
    }).catch(() => {});
  }
}

/** Whether it does no harm if the gateway receives the change twice. */
function isRepeatable(entry) { return "set" in entry.operation && !entry.operation.isPress; }

function lines(batch) {
  return batch.map(([key, { id, operation: { isPress, ...operation } }]) =>
    JSON.stringify({ key, ...operation, id, source: "panel" }) + "\n").join("");
}
