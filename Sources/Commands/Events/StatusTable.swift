// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Values

/// What each key shows beside its actual value, and which keys show something new.
package struct StatusTable {
  /// What a key shows, and the newest command of it.
  private struct Row {
    var target: Value?
    /// When the phase or the reported value last changed; meaningful once ``hasSince`` is set.
    var since = Moment.zero
    /// The number of the newest command that had a phase.
    var number: UInt64 = 0
    var phase: Phase?
    var hasSince = false
    /// Whether the target changed since ``StatusTable/takeNewTarget(of:)``.
    var hasNewTarget = false
  }

  private var rows: LazyArray<Row>
  /// Keys that changed, until the owner removes them; a key may be there more than once.
  package var changedKeys: [KeyIndex] = []

  init(keys: Int) { rows = LazyArray(repeating: Row(), count: keys) }

  /// Makes room for more keys.
  mutating func extend(keys: Int) { rows.extend(to: keys) }

  func status(_ key: KeyIndex, actual: Value?) -> KeyStatus {
    let row = rows[key]
    return KeyStatus(
      target: row.target,
      actual: actual,
      phase: row.phase,
      since: row.hasSince ? row.since : nil
    )
  }

  /// What was requested of a key last.
  package func target(of key: KeyIndex) -> Value? { rows[key].target }

  /// The number of the newest command of `key` that had a phase; 0 before the first.
  func newestNumber(of key: KeyIndex) -> UInt64 { rows[key].number }

  /// Whether the target of `key` changed since the last call.
  package mutating func takeNewTarget(of key: KeyIndex) -> Bool {
    guard rows[key].hasNewTarget else { return false }
    rows[key].hasNewTarget = false
    return true
  }

  @inline(__always)
  mutating func setTarget(_ target: Value?, of key: KeyIndex) {
    // Most targets are numbers, which need no call to be compared.
    if case .number(let new)? = target, case .number(let old)? = rows[key].target {
      if new == old { return }
    } else if rows[key].target == target {
      return
    }
    Self.set(target, in: &rows[key])
    markChanged(key)
  }

  private static func set(_ target: Value?, in row: inout Row) {
    row.target = target
    row.hasNewTarget = true
  }

  /// Records a phase of the command numbered `number`; one that is not the newest is ignored.
  @inline(__always)
  mutating func record(_ phase: Phase, of number: UInt64, for key: KeyIndex, at now: Moment) {
    guard number >= rows[key].number else { return }
    Self.record(phase, of: number, in: &rows[key], at: now)
    markChanged(key)
  }

  private static func record(
    _ phase: Phase,
    of number: UInt64,
    in row: inout Row,
    at now: Moment
  ) {
    row.number = number
    row.phase = phase
    row.since = now
    row.hasSince = true
  }

  /// Shows what another gateway of a cluster says of a key, whose device it drives.
  mutating func show(_ status: KeyStatus, of key: KeyIndex) {
    rows[key].target = status.target
    rows[key].phase = status.phase
    rows[key].since = status.since ?? .zero
    rows[key].hasSince = status.since != nil
    rows[key].hasNewTarget = false
    markChanged(key)
  }

  /// Records that the device reported another value.
  mutating func recordReport(for key: KeyIndex, at now: Moment) {
    Self.recordReport(in: &rows[key], at: now)
    markChanged(key)
  }

  private static func recordReport(in row: inout Row, at now: Moment) {
    row.since = now
    row.hasSince = true
  }

  @inline(__always)
  mutating func markChanged(_ key: KeyIndex) {
    if changedKeys.last != key { changedKeys.append(key) }
  }
}

/// What a key shows: its values, and the phase of its newest command.
package struct KeyStatus: Sendable {
  /// What was requested last; `nil` where nothing is known of the device either.
  package var target: Value?
  /// What the device reported last.
  package var actual: Value?
  /// The phase of the newest command; `nil` before the first.
  package var phase: Phase?
  /// When ``phase`` or ``actual`` last changed; `nil` if never.
  package var since: Moment?

  package init(
    target: Value? = nil,
    actual: Value? = nil,
    phase: Phase? = nil,
    since: Moment? = nil
  ) {
    self.target = target
    self.actual = actual
    self.phase = phase
    self.since = since
  }
}
