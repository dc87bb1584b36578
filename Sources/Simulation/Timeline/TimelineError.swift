// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
package import Values

/// Why a line of a timeline is left out.
package enum TimelineError: Error, Hashable, Sendable {
  /// `at` is less than that of the line before; both in milliseconds.
  case timeRunsBackwards(found: Double, after: Double)
  /// `at` is negative or too large, in milliseconds.
  case timeOutOfRange(Double)
  /// A `step` or `toggle` of a key that has neither a pending nor a sent value.
  case noBase(key: String)
  /// A `step` or `toggle` of a value that does not support it.
  case wrongBase(key: String, operation: String, expected: String, found: String)
  /// A request that does not apply to a virtual clock.
  case notPlayable(String)
  /// The change is not valid for its device.
  case refused(ValidationError)

  /// One sentence that is safe for a terminal.
  package var description: String {
    switch self {
    case .timeRunsBackwards(let found, let after):
      "\"at\" is \(Self.text(found)) after \(Self.text(after)): it must not decrease"
    case .timeOutOfRange(let found):
      "\"at\" is \(Self.text(found)): milliseconds from 0 to 1000000000000 are allowed"
    case .noBase(let key):
      "\(key) has no value to count from: \"set\" it first"
    case .wrongBase(let key, let operation, let expected, let found):
      "\"\(operation)\" needs \(expected); \(key) is at \(found)"
    case .notPlayable(let operation):
      "\"\(operation)\" means nothing on a virtual clock: set, step, toggle, flush and cancel are"
        + " allowed"
    case .refused(let error): error.description
    }
  }

  private static func text(_ number: Double) -> String { JSONWriter.text(.number(number)) }
}
