// Settle
// SPDX-License-Identifier: Apache-2.0

/// The numbers of an engine's keys; those of idle keys are reclaimed.
///
/// Strings are stored in a ``KeyTable``, which looks up a known name without allocating.
@usableFromInline
@frozen
struct KeyNames<Key: Hashable & Sendable>: ~Copyable {
  @usableFromInline var texts = KeyTable(capacity: 4)
  @usableFromInline var numbers: [Key: KeyIndex] = [:]
  /// The keys by number, if they are not strings; `nil` for a free number.
  @usableFromInline var keys: [Key?] = []
  @usableFromInline var free: [KeyIndex] = []
  /// The next number to check for reclaiming.
  @usableFromInline var hand = 0

  /// The maximum number of known keys that are not in use.
  static var allowance: Int { 4096 }

  @inlinable init() {}

  @inlinable static var areTexts: Bool { Key.self == String.self }

  /// The number of known keys.
  @inlinable var count: Int { Self.areTexts ? texts.count : numbers.count }

  @inlinable
  mutating func intern(_ key: Key) -> KeyIndex {
    if let text = key as? String { return texts.intern(text) }
    return numbers[key] ?? add(key)
  }

  @inlinable
  func find(_ key: Key) -> KeyIndex? {
    if let text = key as? String { return texts.find(text) }
    return numbers[key]
  }

  @inlinable
  func key(of index: KeyIndex) -> Key {
    if Self.areTexts, let key = texts.name(of: index) as? Key { return key }
    guard let key = keys[Int(index.rawValue)] else {
      preconditionFailure("Key \(index.rawValue) is not known.")
    }
    return key
  }

  @usableFromInline
  mutating func add(_ key: Key) -> KeyIndex {
    let index = free.popLast() ?? KeyIndex(Int32(keys.count))
    if Int(index.rawValue) < keys.count {
      keys[Int(index.rawValue)] = key
    } else {
      keys.append(key)
    }
    numbers[key] = index
    return index
  }

  // MARK: Reclaiming numbers

  /// Whether more keys are known than the allowance.
  @inlinable var isCrowded: Bool { count > Self.crowd }

  @usableFromInline static var crowd: Int { allowance }

  /// Reclaims up to four numbers that `isIdle`; called for each key added while ``isCrowded``.
  @usableFromInline
  mutating func reclaim(where isIdle: (KeyIndex) -> Bool) {
    let size = Self.areTexts ? texts.capacity : keys.count
    for _ in 0..<min(4, size) {
      hand = hand + 1 < size ? hand + 1 : 0
      let index = KeyIndex(Int32(hand))
      guard isKnown(index), isIdle(index) else { continue }
      remove(index)
    }
  }

  private func isKnown(_ index: KeyIndex) -> Bool {
    Self.areTexts ? texts.isUsed(index) : keys[Int(index.rawValue)] != nil
  }

  private mutating func remove(_ index: KeyIndex) {
    if Self.areTexts { return texts.remove(index) }
    guard let key = keys[Int(index.rawValue)] else { return }
    keys[Int(index.rawValue)] = nil
    numbers[key] = nil
    free.append(index)
  }
}
