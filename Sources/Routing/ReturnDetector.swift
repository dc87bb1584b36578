// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Recognizes that what routes forward comes back to their inputs.
///
/// A bridge that joins both ends of a route makes a message circulate for ever, and most bridges
/// drop its mark (``RouteTrail``). A payload that comes again proves nothing, since a knob repeats
/// itself too. Therefore an output is paused once each message for it repeats what it has just
/// forwarded. A sender of its own repeats itself during the pause, which then ends, and everything
/// is forwarded. Only what stays away for as long as it is not forwarded, and then comes again,
/// comes back.
///
/// Once that is proven, every forwarded message is dropped the one time it comes back, so a person
/// who sends the same payload again is not lost: as many leave as were sent. When one does not come
/// back, the bridge is gone, and nothing is dropped any more.
struct ReturnDetector {
  enum Verdict: Equatable {
    /// Somebody sent it, as far as is known.
    case new
    /// The same, and its output is paused from now on.
    case paused
    /// It was forwarded before, and has come back.
    case returned
  }

  /// How long a forwarded message is remembered.
  static let window = Duration.seconds(2)
  /// A sender that has repeated itself within ``window`` each time does so within this pause, even
  /// if what was forwarded before the pause comes back in it.
  static let longestPause = Duration.seconds(4)
  /// The number of messages in a row that repeat what was forwarded, before the first pause.
  static let suspicious = 8
  /// The number of longest pauses that prove that messages come back.
  static let proof = 3
  /// How long an output is not paused after a sender has repeated itself during a pause.
  static let trust = Duration.seconds(60)
  /// The number of forwarded messages that are remembered.
  static let capacity = 4096

  private struct Forwarded {
    let digest: Int
    let output: KeyIndex
    let at: Moment
  }

  /// The forwarded messages of one output and payload in ``forwarded``.
  private struct Tally {
    /// Those that may come back.
    var awaited = 0
    /// Those that have come back, which are the older ones.
    var seen = 0
  }

  /// What is known of an output whose messages repeat themselves.
  private struct Suspicion {
    /// How many messages in a row have repeated one that was forwarded.
    var repetitions = 0
    var last: Moment
    var longestGap = Duration.zero
    var pausedUntil: Moment?
    var isLongPause = false
    /// The message that began the pause.
    var suspect = 0
    var longPauses = 0
    var trustedUntil: Moment?
    var isProven = false
  }

  /// The oldest first.
  private var forwarded = Deque<Forwarded>()
  private var tallies: [Int: Tally] = [:]
  private var suspicions: [KeyIndex: Suspicion] = [:]

  /// When the first pause ends.
  var nextDeadline: Moment? {
    suspicions.isEmpty ? nil : suspicions.values.compactMap(\.pausedUntil).min()
  }

  func isPaused(_ output: KeyIndex) -> Bool {
    !suspicions.isEmpty && suspicions[output]?.pausedUntil != nil
  }

  /// A message is forwarded.
  mutating func forward(_ payload: [UInt8], by output: KeyIndex, at now: Moment) {
    expire(at: now)
    if forwarded.count == Self.capacity { dropFirst() }
    let digest = Self.digest(payload.span, output)
    forwarded.append(Forwarded(digest: digest, output: output, at: now))
    tallies[digest, default: Tally()].awaited += 1
  }

  /// A forwarded message did not reach its broker.
  mutating func withdraw(_ payload: [UInt8], by output: KeyIndex) {
    _ = consume(Self.digest(payload.span, output))
  }

  /// A message for an output arrives.
  mutating func receive(_ payload: Span<UInt8>, for output: KeyIndex, at now: Moment) -> Verdict {
    expire(at: now)
    if tallies.isEmpty, suspicions.isEmpty { return .new }
    let digest = Self.digest(payload, output)
    guard consume(digest) else {
      trust(output, digest, at: now)
      return .new
    }
    var suspicion = suspicions[output] ?? Suspicion(last: now)
    defer { suspicions[output] = suspicion }
    if suspicion.isProven { return .returned }
    if let end = suspicion.trustedUntil, now < end { return .new }
    if suspicion.longPauses == Self.proof {
      suspicion = Suspicion(last: now, isProven: true)
      return .returned
    }
    suspicion.repetitions += 1
    suspicion.longestGap = max(suspicion.longestGap, suspicion.last.duration(to: now))
    suspicion.last = now
    guard suspicion.repetitions >= Self.suspicious, suspicion.pausedUntil == nil else {
      return .new
    }
    // A sender that is faster has to wait less.
    let pause = min(suspicion.longestGap * 4, Self.longestPause)
    suspicion.isLongPause = pause == Self.longestPause
    suspicion.suspect = digest
    suspicion.pausedUntil = now.advanced(by: pause)
    return .paused
  }

  /// Ends the pauses that are due; returns their outputs.
  mutating func endPauses(at now: Moment) -> [KeyIndex] {
    guard let first = nextDeadline, first <= now else { return [] }
    let due = suspicions.filter { $0.value.pausedUntil.map { $0 <= now } ?? false }.map(\.key)
    for output in due {
      suspicions[output]?.pausedUntil = nil
      if suspicions[output]?.isLongPause == true { suspicions[output]?.longPauses += 1 }
    }
    return due.sorted { $0.rawValue < $1.rawValue }
  }

  /// An output has another topic from now on.
  mutating func forget(_ output: KeyIndex) { suspicions[output] = nil }

  /// Whether the message is one that was forwarded, which is awaited one time less.
  private mutating func consume(_ digest: Int) -> Bool {
    guard let tally = tallies[digest], tally.awaited > 0 else { return false }
    tallies[digest] = Tally(awaited: tally.awaited - 1, seen: tally.seen + 1)
    return true
  }

  /// Somebody sent a message that was not forwarded before: no bridge keeps an output busy.
  private mutating func trust(_ output: KeyIndex, _ digest: Int, at now: Moment) {
    guard !suspicions.isEmpty, let suspicion = suspicions[output], !suspicion.isProven else {
      return
    }
    if suspicion.pausedUntil != nil, suspicion.suspect == digest {
      suspicions[output] = Suspicion(last: now, trustedUntil: now.advanced(by: Self.trust))
    } else if suspicion.trustedUntil.map({ $0 <= now }) ?? true {
      suspicions[output] = nil
    }
  }

  private mutating func expire(at now: Moment) {
    while let first = forwarded.first, first.at.duration(to: now) > Self.window { dropFirst() }
  }

  private mutating func dropFirst() {
    guard let first = forwarded.popFirst(), var tally = tallies[first.digest] else { return }
    if tally.seen > 0 {
      tally.seen -= 1
    } else {
      tally.awaited -= 1
      missed(by: first.output, at: first.at)
    }
    tallies[first.digest] = tally.awaited + tally.seen > 0 ? tally : nil
  }

  /// A message that was forwarded did not come back.
  private mutating func missed(by output: KeyIndex, at moment: Moment) {
    guard !suspicions.isEmpty, var suspicion = suspicions[output] else { return }
    if suspicion.pausedUntil == nil, suspicion.trustedUntil.map({ $0 < moment }) ?? true {
      suspicions[output] = nil
    } else {
      (suspicion.longPauses, suspicion.isLongPause) = (0, false)
      suspicions[output] = suspicion
    }
  }

  private static func digest(_ payload: Span<UInt8>, _ output: KeyIndex) -> Int {
    var hasher = Hasher()
    hasher.combine(output)
    unsafe payload.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    return hasher.finalize()
  }
}
