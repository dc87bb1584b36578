// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import LastOut
import Values

/// How long a key's value that comes by a message waits because two values take turns.
///
/// From the eighth turn on the quiet period doubles with each: up to two seconds during the first
/// minute or the first 28 turns, up to thirty seconds later. It is forgotten ten seconds after the
/// last wait.
struct TurnModel {
  /// The value that was asked for last, and the one before.
  private var newest: Value?
  private var other: Value?
  /// When the values took turns, the oldest first.
  private(set) var turns: [Moment] = []
  /// When the last value that was slowed may leave; without one, when the last turn was.
  private var end = Moment.zero
  private var shown: JSONValue?
  /// How many turns the last changed report stands for.
  private var credit = 0

  mutating func reported(_ wire: JSONValue) {
    var wire = wire
    if case .integer(let number) = wire { wire = .number(Double(number)) }
    if wire != shown { credit = 3 }
    shown = wire
  }

  /// The quiet period of a value that is asked for; `nil` for that of the policy.
  mutating func wait(
    for value: Value,
    isUrgent: Bool,
    quiet: Duration,
    at now: Moment
  ) -> Duration? {
    let isPair = value == newest || value == other
    if isPair, now < end { return waitAlong(value, isUrgent: isUrgent, quiet: quiet, at: now) }
    if value == newest { return nil }
    let isForgotten = end.duration(to: now) > .seconds(10)
    let isSlowed = turns.count >= 8 && !isForgotten
    if isSlowed, !isPair { return nil }
    let isTurn = isPair && !isForgotten && (credit > 0 || isSlowed)
    other = newest
    newest = value
    end = now
    guard isTurn else {
      turns = []
      credit = 0
      return nil
    }
    if credit > 0 {
      credit -= 1
      turns.append(now)
    }
    guard turns.count >= 8, !isUrgent else { return nil }
    let wait = longer(quiet, at: now)
    end = now.advanced(by: wait)
    return wait
  }

  /// A value that is asked for while one waits.
  private mutating func waitAlong(
    _ value: Value,
    isUrgent: Bool,
    quiet: Duration,
    at now: Moment
  ) -> Duration? {
    if value == other { (newest, other) = (other, newest) }
    guard isUrgent else { return max(now.duration(to: end), quiet) }
    end = now
    return nil
  }

  private func longer(_ quiet: Duration, at now: Moment) -> Duration {
    var wait = max(quiet, .milliseconds(20))
    for _ in 7..<turns.count where wait < .seconds(30) { wait += wait }
    let isLong = turns.count > 28 || turns[0].duration(to: now) >= .seconds(60)
    return max(quiet, min(wait, isLong ? .seconds(30) : .seconds(2)))
  }
}
