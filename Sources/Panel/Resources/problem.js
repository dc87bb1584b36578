// Settle
// SPDX-License-Identifier: Apache-2.0

// What the gateway refuses, and why.

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }

  /** The problem of a response. */
  static async of(answer) {
    try {
      const problem = await answer.json();
      return new Problem(answer.status, problem.detail ?? problem.title);
    } catch {
      return new Problem(answer.status, `the gateway answered ${answer.status}`);
    }
  }
}
