// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import LastOut
package import Values

/// Finds a command topic that is fed from a state topic: a bridge or an automation turns what the
/// device reports back into commands, a step late, so that two values chase each other for ever.
///
/// Such a loop shows as two requested values that alternate quickly, with a changed report between
/// every two of them. After ``Settings/maxAlternations`` the newest value is refused, while the other
/// one stands. It is refused until
///
/// - a third value is asked for,
/// - it has not been asked for during ``Settings/quiet``, or
/// - it is asked for twice without any report in between. A sender that repeats a value although the
///   device reported nothing is no echo: somebody plays with a switch, a script blinks. The two values
///   may then alternate freely during ``Settings/exemption``.
///
/// Of a device's values only digests are kept, 32 bytes a key that is used.
package struct FeedbackLoopDetector: ~Copyable {
  package struct Settings: Sendable {
    /// How often the two values alternate before that is a loop; odd, so that the value that
    /// stands is the one that was asked for before the first echo.
    package var maxAlternations = 7
    /// The longest time between two alternations.
    package var pace: Duration = .seconds(10)
    /// How long a refused value must not have been asked for, to be taken again.
    package var quiet: Duration = .seconds(10)
    /// How long two values may alternate after they have proved to be no echo.
    package var exemption: Duration = .seconds(3600)

    package init() {}
  }

  /// What to do with a change.
  package enum Verdict: Hashable, Sendable {
    case pass
    /// Part of a loop: to be refused.
    ///
    /// `source` is the state source that reported last, by its place in the property; `isNew` tells
    /// that the loop was found just now.
    case loop(source: Int, isNew: Bool)
  }

  fileprivate struct Trace {
    /// Digests of the value that was asked for last, of another one before it, and of the last
    /// report.
    var last: UInt32 = 0
    var older: UInt32 = 0
    var reported: UInt32 = 0
    var alternations: UInt8 = 0
    /// How often the refused value was asked for without a report.
    var repetitions: UInt8 = 0
    var source: UInt8 = 0
    var hasReport = false
    var hasNewReport = false
    /// ``older`` is refused.
    var isStopped = false
    var isExempt = false
    /// The last alternation or refusal; of an exemption its beginning.
    var at = Moment.zero
  }

  private let settings: Settings
  private var traces: LazyArray<Trace>

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
    traces[place].hasReport = true
    let digest = Self.digest(wire)
    guard traces[place].reported != digest else { return }
    traces[place].reported = digest
    traces[place].hasNewReport = true
    traces[place].source = UInt8(clamping: source)
  }

  /// Judges a value that was asked for by a message.
  ///
  /// A value that is the same as the one before passes after one comparison.
  package mutating func requested(_ key: KeyIndex, _ value: Value, at now: Moment) -> Verdict {
    guard hasReports else { return .pass }
    let digest = Self.digest(value)
    guard traces[Int(key.rawValue)].last != digest else { return .pass }
    return traces[Int(key.rawValue)].requested(digest, at: now, settings)
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

  private static func digest(_ number: Double) -> UInt32 {
    UInt32(truncatingIfNeeded: (number.bitPattern &* 0x9E37_79B9_7F4A_7C15) >> 32)
  }
}

extension FeedbackLoopDetector.Trace {
  /// Another value than the last one is asked for.
  fileprivate mutating func requested(
    _ digest: UInt32,
    at now: Moment,
    _ settings: FeedbackLoopDetector.Settings
  ) -> FeedbackLoopDetector.Verdict {
    if isStopped {
      if digest == older, at.duration(to: now) < settings.quiet { return refuse(at: now) }
      isStopped = false
      hasNewReport = false
    }
    if isExempt {
      if digest == older, at.duration(to: now) < settings.exemption {
        swap(&last, &older)
        return .pass
      }
      isExempt = false
      hasNewReport = false
    }
    let alternates = digest == older && hasNewReport && at.duration(to: now) <= settings.pace
    alternations = alternates ? alternations + 1 : 0
    at = now
    hasNewReport = false
    guard Int(alternations) < settings.maxAlternations else {
      isStopped = true
      alternations = 0
      repetitions = 0
      hasReport = false
      return .loop(source: Int(source), isNew: true)
    }
    older = last
    last = digest
    return .pass
  }

  /// The stopped value is asked for once more: an echo, or a sender that repeats it.
  private mutating func refuse(at now: Moment) -> FeedbackLoopDetector.Verdict {
    if !hasReport { repetitions += 1 }
    hasReport = false
    at = now
    guard repetitions >= 2 else { return .loop(source: Int(source), isNew: false) }
    isStopped = false
    isExempt = true
    swap(&last, &older)
    return .pass
  }
}
