// Settle
// SPDX-License-Identifier: Apache-2.0

/// Values that a flush has claimed and not started, at most one of each key.
///
/// A sparse set: adding and removing take constant time and hash nothing. Places of keys that are
/// not claimed are stale, so that nothing is cleared.
@usableFromInline
@frozen
struct Claims<Value> {
  @usableFromInline typealias Run = LastOutCore<Value>.Run

  /// Where the claim of each key is in ``runs``, if it is there.
  @usableFromInline var places = KeyArray<Int32>()
  /// In the order of claiming; `nil` where one was removed.
  @usableFromInline var runs: [Run?] = []
  @usableFromInline var count = 0

  @inlinable
  init() {}

  @inlinable var isEmpty: Bool { count == 0 }

  /// The claimed values, in the order of claiming.
  var all: [Run] { runs.compactMap { $0 } }

  @inlinable
  mutating func add(_ run: Run) {
    if runs.count > 2 * count + 64 { compact() }
    places.extend(toInclude: run.key, with: 0)
    places[run.key] = Int32(runs.count)
    runs.append(run)
    count += 1
  }

  /// The claimed value of `key`.
  @inlinable subscript(key: KeyIndex) -> Value? { place(of: key).flatMap { runs[$0]?.value } }

  @inlinable
  mutating func remove(_ key: KeyIndex) -> Run? {
    guard let place = place(of: key) else { return nil }
    let run = runs[place].take()
    count -= 1
    if count == 0 { runs.removeAll(keepingCapacity: true) }
    return run
  }

  /// The keys of the claimed values.
  @inlinable var keys: [KeyIndex] { runs.compactMap { $0?.key } }

  /// Drops the places of removed claims, where flushes overlap for so long that some are always
  /// left.
  @usableFromInline
  mutating func compact() {
    runs = runs.filter { $0 != nil }
    for (place, run) in runs.enumerated() { if let run { places[run.key] = Int32(place) } }
  }

  @inlinable
  func place(of key: KeyIndex) -> Int? {
    guard Int(key.rawValue) < places.count else { return nil }
    let place = Int(places[key])
    return place < runs.count && runs[place]?.key == key ? place : nil
  }
}

extension Claims: Sendable where Value: Sendable {}
