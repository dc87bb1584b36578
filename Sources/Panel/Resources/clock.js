// Settle
// SPDX-License-Identifier: Apache-2.0

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
