// Settle
// SPDX-License-Identifier: Apache-2.0

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
