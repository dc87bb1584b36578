// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
package import JSON
package import LastOut
package import Values

/// Slows a command topic that is fed from a state topic: a bridge or an automation turns what the
/// device gets or reports back into commands, a step late, so that two values chase each other for
/// ever.
///
/// Such a loop shows as two requested values that alternate, with changed reports between them.
/// From the eighth alternation the key's quiet period doubles with each: to at most
/// ``Settings/firstWait`` while the loop is young, and then to at most ``Settings/longestWait``.
/// Nothing is refused, because a hand that plays with a switch and a script that blinks look the
/// same, and their last value counts. While a slowed value waits,
///
/// - the other one and repetitions wait until the same moment,
/// - a third value is not slowed and changes nothing.
///
/// ``Settings/pace`` without an alternation ends it; the time in which a slowed value waits does
/// not count. Of a device's values only digests are kept, 32 bytes a key that is used.
package struct FeedbackLoopDetector: ~Copyable {
  package struct Settings: Sendable {
    /// How many alternations are not slowed.
    package var patience = 7
    /// The longest time between two alternations.
    package var pace: Duration = .seconds(10)
    /// What doubles, where the quiet period is shorter.
    package var shortestQuiet: Duration = .milliseconds(20)
    /// The longest wait in the ``firstPeriod``.
    package var firstWait: Duration = .seconds(2)
    package var longestWait: Duration = .seconds(30)
    /// How long after its first alternation a loop is young.
    package var firstPeriod: Duration = .seconds(60)
    /// How many alternations a young loop has.
    ///
    /// Only changes that follow each command at once are so many in the ``firstPeriod``.
    package var mostInFirstPeriod = 28

    package init() {}
  }

  /// What to do with a change.
  package enum Verdict: Hashable, Sendable {
    case pass
    /// Part of a loop: its quiet period is `wait`.
    ///
    /// `source` is the state source that reported last, by its place in the property; `isNew` tells
    /// that this is the first change to be slowed.
    case slow(wait: Duration, source: Int, isNew: Bool)
  }

  fileprivate struct Trace {
    /// Digests of the value that was asked for last, of another one before it, and of the last
    /// report.
    var last: UInt32 = 0
    var older: UInt32 = 0
    var reported: UInt32 = 0
    var alternations: UInt8 = 0
    /// How many alternations the last changed report stands for: a device reports less often than
    /// it gets commands.
    var evidence: UInt8 = 0
    var source: UInt8 = 0
    /// The first alternation.
    var began = Moment.zero
    /// The end of the last slowed wait, or else the last alternation.
    var until = Moment.zero
  }

  private let settings: Settings
  private var traces: LazyArray<Trace>
  /// How many changes were slowed.
  package private(set) var slowedCount: UInt64 = 0

  /// - Parameters:
  ///   - keys: How many keys there are.
  ///   - settings: What counts as a loop.
  package init(keys: Int, settings: Settings = Settings()) {
    traces = LazyArray(repeating: Trace(), count: keys)
    self.settings = settings
  }

  /// Whether any device has reported anything; before, no change can be part of a loop.
  package private(set) var hasReports = false

  /// Makes room for more keys.
  package mutating func extend(keys: Int) {
    traces.extend(to: keys)
  }

  /// Notes what a device reported by one of the property's state sources.
  package mutating func reported(_ key: KeyIndex, _ wire: JSONValue, source: Int) {
    hasReports = true
    let place = Int(key.rawValue)
    let digest = Self.digest(wire)
    guard traces[place].reported != digest else { return }
    traces[place].reported = digest
    traces[place].evidence = 3
    traces[place].source = UInt8(clamping: source)
  }

  /// Judges a value that was asked for by a message.
  ///
  /// A value that is the same as the one before passes after two comparisons.
  ///
  /// - Parameters:
  ///   - key: The key that is asked for.
  ///   - value: What is asked for.
  ///   - isUrgent: Whether the value is sent at once; it counts, and is never slowed.
  ///   - quiet: The key's quiet period.
  ///   - now: The time of the request.
  /// - Returns: Whether it waits longer than its policy says, and how long.
  package mutating func requested(
    _ key: KeyIndex,
    _ value: Value,
    isUrgent: Bool = false,
    quiet: @autoclosure () -> Duration,
    at now: Moment
  ) -> Verdict {
    guard hasReports else { return .pass }
    let (place, digest) = (Int(key.rawValue), Self.digest(value))
    if traces[place].last == digest, traces[place].until <= now { return .pass }
    let wasPatient = traces[place].alternations <= settings.patience
    let wait = traces[place].requested(digest, isUrgent, quiet(), at: now, settings)
    guard wait > .zero else { return .pass }
    slowedCount += 1
    return .slow(wait: wait, source: Int(traces[place].source), isNew: wasPatient)
  }

  private static func digest(_ wire: JSONValue) -> UInt32 {
    switch wire {
    case .integer(let number): digest(Double(number))
    case .number(let number): digest(number)
    case .boolean(let flag): flag ? 1 : 2
    case .null, .string, .array, .object: UInt32(truncatingIfNeeded: wire.hashValue)
    }
  }

  private static func digest(_ value: Value) -> UInt32 {
    switch value {
    case .number(let number): digest(number)
    case .boolean(let flag): flag ? 1 : 2
    case .text, .color: UInt32(truncatingIfNeeded: value.hashValue)
    }
  }

  /// Never zero, which stands for no value.
  private static func digest(_ number: Double) -> UInt32 {
    UInt32(truncatingIfNeeded: (number.bitPattern &* 0x9E37_79B9_7F4A_7C15) >> 32) | 1
  }
}

extension FeedbackLoopDetector.Trace {
  /// A value is asked for; returns how long it waits at least, or zero.
  fileprivate mutating func requested(
    _ digest: UInt32,
    _ isUrgent: Bool,
    _ quiet: Duration,
    at now: Moment,
    _ settings: FeedbackLoopDetector.Settings
  ) -> Duration {
    if now < until, digest == last || digest == older {
      if digest == older { swap(&last, &older) }
      if isUrgent { until = now }
      return isUrgent ? .zero : max(quiet, now.duration(to: until))
    }
    guard digest != last else { return .zero }
    let isOpen = now <= until.advanced(by: settings.pace)
    let isSlowed = isOpen && Int(alternations) > settings.patience
    guard digest == older, isOpen, evidence > 0 || isSlowed else {
      if isSlowed { return .zero }
      alternations = 0
      evidence = 0
      until = now
      older = last
      last = digest
      return .zero
    }
    swap(&last, &older)
    if evidence > 0 {
      evidence -= 1
      if alternations == 0 { began = now }
      if alternations < .max { alternations += 1 }
    }
    let wait = isUrgent ? .zero : wait(quiet, at: now, settings)
    until = now.advanced(by: wait)
    return wait
  }

  /// The quiet period after so many alternations; zero for that of the policy.
  private func wait(
    _ quiet: Duration,
    at now: Moment,
    _ settings: FeedbackLoopDetector.Settings
  ) -> Duration {
    let doublings = Int(alternations) - settings.patience
    guard doublings > 0 else { return .zero }
    let isYoung =
      Int(alternations) <= settings.mostInFirstPeriod
      && began.duration(to: now) < settings.firstPeriod
    let most = isYoung ? settings.firstWait : settings.longestWait
    // Sixteen doublings of the shortest quiet period are longer than any wait.
    let doubled = max(quiet, settings.shortestQuiet) * (1 << min(doublings, 16))
    return max(quiet, min(doubled, most))
  }
}

extension FeedbackLoopDetector {
  /// A change that is part of a loop.
  struct Slowing {
    /// Its quiet period.
    var wait: Duration
    /// The line for the log; `nil` for a loop that was found before.
    var entry: LogEntry?
  }

  /// Judges a change that arrived as a message on `topic`; `nil` for one that is not slowed.
  ///
  /// Actions are never: each is a command of its own.
  ///
  /// - Throws: When the property has no such change.
  mutating func check(
    _ change: ValueChange,
    of key: KeyIndex,
    _ commands: inout CommandStateMachine,
    receivedOn topic: @autoclosure () -> String,
    at now: Moment
  ) throws(ValidationError) -> Slowing? {
    guard hasReports, !commands.isAction(key) else { return nil }
    commands.migrate(key, at: now)
    let value: Value
    switch change {
    case .set(let given): value = given
    case .toggle:
      guard let base = commands.base(of: key) else { return nil }
      value = try commands.registry.definition(of: key).property.toggled(from: base)
    case .step: return nil  // It adds to what is known and cannot alternate between two values.
    }
    let verdict = requested(
      key,
      value,
      isUrgent: commands.isUrgent(value, of: key),
      quiet: commands.registry.definition(of: key).property.policy.delay,
      at: now
    )
    guard case .slow(let wait, let source, let isNew) = verdict else { return nil }
    guard isNew else { return Slowing(wait: wait) }
    let entry = commands.registry[key]
    let values = [commands.status(key).target, value].compactMap { $0?.bareText }
    let line = LogEntry(
      .warning,
      "Feedback loop slowed: commands or reports return as changes of two values in turn",
      [
        "key": entry.key, "commands": topic(), "publishes": entry.property.command.topic,
        "states": entry.states[source].topic,
        "values": values.map { Excerpt.of($0) }.joined(separator: " and "),
      ]
    )
    return Slowing(wait: wait, entry: line)
  }
}
