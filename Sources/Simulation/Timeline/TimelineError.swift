// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
internal import JSON

/// Why a line of a timeline was left out.
package enum TimelineError: Error, Hashable, Sendable {
  /// `at` lies before the line before; both in milliseconds.
  case timeRunsBackwards(found: Double, after: Double)
  /// `at` is not a time that a timeline can reach, in milliseconds.
  case timeOutOfRange(Double)
  /// `step` or `toggle` on a key that has neither a pending nor a sent value.
  case noBase(key: String)
  /// `step` or `toggle` on a value that has no such thing.
  case wrongBase(key: String, operation: String, expected: String, found: String)
  /// A request that has no meaning on a virtual clock.
  case notPlayable(String)
  /// The devices refuse the change.
  case refused(ValidationError)

  /// One sentence, fit for a terminal.
  package var description: String {
    switch self {
    case .timeRunsBackwards(let found, let after):
      "\"at\" is \(Self.text(found)) after \(Self.text(after)): it must not decrease"
    case .timeOutOfRange(let found):
      "\"at\" is \(Self.text(found)): milliseconds from 0 to 1000000000000 are allowed"
    case .noBase(let key):
      "\(key) has no value yet, so there is nothing to count from: \"set\" it first"
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
