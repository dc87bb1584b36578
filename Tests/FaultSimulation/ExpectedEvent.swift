// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import LastOut
import Values

/// An event that the machine must emit, as far as the model predicts it.
struct ExpectedEvent: Hashable {
  var key: KeyIndex
  var phase: Phase
  var value: Value?
  var number: UInt64
  var collapsed: Int
  var attempt: Int
  var reason: String?
  /// The caller that gets the reply; 0 for none.
  var caller: UInt64
  var isFinal: Bool

  init(
    key: KeyIndex,
    phase: Phase,
    value: Value?,
    number: UInt64,
    collapsed: Int,
    attempt: Int,
    reason: String?,
    caller: UInt64,
    isFinal: Bool
  ) {
    self.key = key
    self.phase = phase
    self.value = value
    self.number = number
    self.collapsed = collapsed
    self.attempt = attempt
    self.reason = reason
    self.caller = caller
    self.isFinal = isFinal
  }

  init(_ event: CommandEvent) {
    key = event.key
    phase = event.phase
    value = event.value
    number = event.number
    collapsed = event.collapsed
    attempt = event.attempt
    reason = event.reason
    caller = event.origin?.replyTo ?? 0
    isFinal = event.isFinal
  }
}

extension ExpectedEvent: CustomStringConvertible {
  var description: String {
    let text = value.map { " \($0.bareText)" } ?? ""
    let why = reason.map { " (\($0))" } ?? ""
    return "#\(number) of key \(key.rawValue) \(phase)\(text)\(why), collapsed \(collapsed), "
      + "attempt \(attempt), caller \(caller)\(isFinal ? ", final" : "")"
  }
}
