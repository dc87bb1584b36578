// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// The answers to requests with an `Idempotency-Key`, so that a repeated request changes nothing.
///
/// An answer is kept for ``lifetime``. Beyond `capacity` bytes the oldest answers are forgotten
/// before that; a request that is not answered yet is never forgotten.
package struct IdempotentAnswers<Answer> {
  /// What to do with a request.
  package enum Verdict {
    /// Execute it, and then call ``record(_:size:of:at:)`` or ``forget(_:)``.
    case execute
    /// The first request with this key is not answered yet.
    case unanswered
    /// Repeat the answer.
    case answered(Answer)
    /// The first request with this key was another one.
    case reused
    /// There is no room, because all requests that are kept wait for their answers.
    case full
  }

  private struct Entry {
    let fingerprint: Int
    var answer: Answer?
    var size: Int
  }

  /// How long an answer is kept.
  package static var lifetime: Duration { .seconds(60) }
  /// About what an entry takes beside its key and its answer's body, in bytes.
  private static var overhead: Int { 512 }

  /// The number of bytes in use.
  package private(set) var size = 0
  private let capacity: Int
  private var entries: [String: Entry] = [:]
  /// The keys of answered requests, the oldest answer first.
  private var answered = Deque<(key: String, at: Moment)>()

  /// Keeps at most `capacity` bytes.
  package init(capacity: Int) {
    self.capacity = capacity
  }

  /// Receives a request; `fingerprint` distinguishes it from others with the same key.
  package mutating func begin(_ key: String, fingerprint: Int, at now: Moment) -> Verdict {
    forgetOld(at: now)
    if let entry = entries[key] {
      guard entry.fingerprint == fingerprint else { return .reused }
      return entry.answer.map { .answered($0) } ?? .unanswered
    }
    let size = Self.overhead + key.utf8.count
    guard makeRoom(for: size) else { return .full }
    entries[key] = Entry(fingerprint: fingerprint, answer: nil, size: size)
    self.size += size
    return .execute
  }

  /// Keeps the answer to an executed request; `size` is that of its body, in bytes.
  package mutating func record(_ answer: Answer, size: Int, of key: String, at now: Moment) {
    guard var entry = entries[key], entry.answer == nil else { return }
    entry.answer = answer
    entry.size += size
    entries[key] = entry
    self.size += size
    answered.append((key, now))
    _ = makeRoom(for: 0)
  }

  /// Forgets a request that was refused for a while: repeated, it is executed.
  package mutating func forget(_ key: String) {
    if let entry = entries.removeValue(forKey: key) { size -= entry.size }
  }

  private mutating func forgetOld(at now: Moment) {
    while let oldest = answered.first, oldest.at.duration(to: now) >= Self.lifetime {
      forgetOldest()
    }
  }

  private mutating func makeRoom(for bytes: Int) -> Bool {
    while size + bytes > capacity, !answered.isEmpty { forgetOldest() }
    return size + bytes <= capacity
  }

  private mutating func forgetOldest() {
    if let oldest = answered.popFirst() { forget(oldest.key) }
  }
}
