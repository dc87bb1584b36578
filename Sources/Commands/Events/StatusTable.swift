// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Values

/// What each key shows beside its actual value, and which keys show something new.
package struct StatusTable {
  /// The newest command of a key.
  private struct Newest {
    var phase: Phase?
    /// The number of the newest command that had a phase.
    var number: UInt64 = 0
    /// When the phase or the reported value last changed.
    var since: Moment?
    /// Whether the target changed since ``StatusTable/takeNewTarget(of:)``.
    var hasNewTarget = false
  }

  private var targets: KeyArray<Value?>
  private var newest: KeyArray<Newest>
  /// Keys that changed, until the owner removes them; a key may be there more than once.
  package var changedKeys: [KeyIndex] = []

  init(keys: Int) {
    targets = KeyArray(repeating: nil, count: keys)
    newest = KeyArray(repeating: Newest(), count: keys)
  }

  /// Makes room for more keys.
  mutating func extend(keys: Int) {
    targets.extend(to: keys, with: nil)
    newest.extend(to: keys, with: Newest())
  }

  func status(_ key: KeyIndex, actual: Value?) -> KeyStatus {
    let newest = newest[key]
    return KeyStatus(target: targets[key], actual: actual, phase: newest.phase, since: newest.since)
  }

  /// What was requested of a key last.
  package func target(of key: KeyIndex) -> Value? { targets[key] }

  /// Whether the target of `key` changed since the last call.
  package mutating func takeNewTarget(of key: KeyIndex) -> Bool {
    guard newest[key].hasNewTarget else { return false }
    newest[key].hasNewTarget = false
    return true
  }

  @inline(__always)
  mutating func setTarget(_ target: Value?, of key: KeyIndex) {
    // Most targets are numbers, which need no call to be compared.
    if case .number(let new)? = target, case .number(let old)? = targets[key] {
      if new == old { return }
    } else if targets[key] == target {
      return
    }
    targets[key] = target
    newest[key].hasNewTarget = true
    markChanged(key)
  }

  /// Records a phase of the command numbered `number`; one that is not the newest is ignored.
  @inline(__always)
  mutating func record(_ phase: Phase, of number: UInt64, for key: KeyIndex, at now: Moment) {
    guard number >= newest[key].number else { return }
    newest[key].number = number
    newest[key].phase = phase
    newest[key].since = now
    markChanged(key)
  }

  /// Records that the device reported another value.
  mutating func recordReport(for key: KeyIndex, at now: Moment) {
    newest[key].since = now
    markChanged(key)
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
}
