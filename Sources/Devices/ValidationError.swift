// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why a change was refused.
///
/// The description is fit for a terminal and never echoes long input.
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
  /// Several changes that are taken or refused together: `needed` more values than now would be
  /// pending, and there is room for `free`.
  case noRoomForAll(needed: Int, free: Int, limit: Int)
  /// It cannot be kept as it must be.
  case notDurable(String)
  /// The gateway is on its way out and takes nothing more.
  case shuttingDown
  /// What a state topic reports comes back on a command topic.
  case echoLoop(commands: String, states: String, values: [String])
}

extension ValidationError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .unknownDevice(let id, let suggestion):
      "no device '\(Excerpt.of(id))'\(Self.question(suggestion))"
    case .unknownProperty(let id, let device, let suggestion):
      "device '\(Excerpt.of(device))' has no property '\(Excerpt.of(id))'"
        + Self.question(suggestion)
    case .invalidKey(let key): "'\(Excerpt.of(key))' is no key; a key is DEVICE/PROPERTY"
    case .wrongType(let found, let expected, let suggestion):
      "found \(Excerpt.of(found)), expected \(expected)\(Self.question(suggestion))"
    case .outOfRange(let found, let allowed): "\(Excerpt.of(found)) is outside \(allowed)"
    case .notAChoice(let found, let allowed, let suggestion):
      "found \(Excerpt.of(found)), allowed: \(Self.list(allowed))\(Self.question(suggestion))"
    case .unsupported(let message), .notDurable(let message): message
    case .noBase:
      "nothing to count from: no value is pending, on its way or known; set a value first"
    case .tooManyPending(let limit):
      "\(limit) keys have a pending value already, which is the limit"
    case .noRoomForAll(let needed, let free, let limit):
      "nothing of it was taken: \(needed) more values would be pending, and there is room for "
        + "\(free) (limits.pending is \(limit))"
    case .shuttingDown: "the gateway is shutting down"
    case .echoLoop(let commands, let states, let values):
      "echo loop: something turns what \(states) reports into commands on \(commands), "
        + "\(values.map { Excerpt.of($0) }.joined(separator: " and ")) in turn; "
        + "refused until that has been quiet for 10 s or another value comes"
    }
  }

  private static func question(_ suggestion: String?) -> String {
    suggestion.map { "; did you mean '\(Excerpt.of($0))'?" } ?? ""
  }

  private static func list(_ words: [String]) -> String {
    let shown = words.prefix(20).map { Excerpt.of($0) }.joined(separator: ", ")
    return words.count > 20 ? "\(shown), and \(words.count - 20) more" : shown
  }
}
