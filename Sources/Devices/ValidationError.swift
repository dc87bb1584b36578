// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why a change was refused. The description is fit for a terminal and never echoes long input.
package enum ValidationError: Error, Hashable, Sendable {
  case unknownDevice(String, suggestion: String?)
  case unknownProperty(String, device: String, suggestion: String?)
  case invalidKey(String)
  case wrongType(found: String, expected: String, suggestion: String?)
  case outOfRange(found: String, allowed: String)
  case notAChoice(found: String, allowed: [String], suggestion: String?)
  /// `step` or `toggle` where the kind has no such thing.
  case unsupported(String)
  /// `step` or `toggle` with nothing to count from.
  case noBase
  /// No further key can have a pending value.
  case tooManyPending(limit: Int)
  /// The gateway is on its way out and takes nothing more.
  case shuttingDown

  package var description: String { fatalError("skeleton") }
}
