// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Values

/// Steps and toggles that wait for their device's state, because there is nothing to count from.
///
/// The steps of a key wait in order and together: until the state arrives, something newer replaces
/// them, or the first of them has waited too long.
struct WaitingSteps {
  /// A step or toggle that was received and neither accepted nor rejected.
  struct Step {
    var change: ValueChange
    /// Counted with accepted changes.
    var number: UInt64
    var receivedAt: Moment
    var options: ChangeOptions
  }

  /// How many may wait for one key.
  static let limit = 1024

  /// No entry is empty.
  private var steps: [KeyIndex: [Step]] = [:]
  private(set) var deadlines: KeyDeadlines
  /// How long the first step of a key waits.
  private let patience: Duration

  init(keys: Int, patience: Duration) {
    deadlines = KeyDeadlines(keys: keys)
    self.patience = patience
  }

  /// Makes room for more keys.
  mutating func extend(keys: Int) { deadlines.extend(keys: keys) }

  /// The number of keys that have waiting steps.
  var keyCount: Int { steps.count }

  var isEmpty: Bool { steps.isEmpty }

  /// The keys that have waiting steps, in order.
  var keys: [KeyIndex] { steps.keys.sorted { $0.rawValue < $1.rawValue } }

  func contains(_ key: KeyIndex) -> Bool { !steps.isEmpty && steps[key] != nil }

  /// When the steps of the first key have waited too long.
  @inline(__always)
  var nextOverdue: Moment? { deadlines.first }

  /// A key whose steps have waited too long, once; the caller removes the steps.
  mutating func popOverdue(at now: Moment) -> KeyIndex? { deadlines.popFirst(at: now) }

  /// Checks that another step of `key` may wait.
  ///
  /// - Throws: When too many of them wait.
  func checkLimit(of key: KeyIndex) throws(ValidationError) {
    let waiting = steps[key]?.count ?? 0
    guard waiting < Self.limit else {
      throw .unsupported("\(waiting) steps wait for the device's state already")
    }
  }

  mutating func append(_ step: Step, for key: KeyIndex) {
    if steps[key] == nil { deadlines.set(key, at: step.receivedAt.advanced(by: patience)) }
    steps[key, default: []].append(step)
  }

  /// Removes and returns what waits for `key`, the oldest first.
  mutating func removeAll(of key: KeyIndex) -> [Step] {
    guard !steps.isEmpty, let waiting = steps.removeValue(forKey: key) else { return [] }
    deadlines.remove(key)
    return waiting
  }

  /// Ends what waits for `key`.
  ///
  /// - Returns: The number of steps that waited.
  @discardableResult
  mutating func end(
    _ key: KeyIndex,
    as phase: Phase,
    reason: String?,
    in log: inout EventLog,
    at now: Moment
  ) -> Int {
    guard contains(key) else { return 0 }
    let ended = removeAll(of: key)
    for step in ended { step.end(as: phase, reason: reason, of: key, in: &log, at: now) }
    return ended.count
  }
}

extension WaitingSteps.Step {
  /// Emits the only event of a step that does not become a value.
  func end(
    as phase: Phase,
    reason: String?,
    of key: KeyIndex,
    in log: inout EventLog,
    at now: Moment
  ) {
    log.emitEnd(
      phase,
      number: number,
      receivedAt: receivedAt,
      reason: reason,
      origin: options.origin,
      for: key,
      at: now
    )
  }
}
