// Settle
// SPDX-License-Identifier: Apache-2.0

/// A failed system call: which one, and why.
package struct OperationsError: Error, Hashable, Sendable {
  package let call: String
  package let code: Int32
  package let reason: String
  package init(call: String, code: Int32, reason: String) {
    self.call = call
    self.code = code
    self.reason = reason
  }
  package var description: String { "\(call): \(reason)" }
}
