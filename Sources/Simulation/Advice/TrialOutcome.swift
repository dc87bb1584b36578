// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// What one policy makes of the changes of one key.
package struct TrialOutcome: Hashable, Sendable {
  /// A command that left.
  package struct Sent: Hashable, Sendable {
    package let at: Moment
    /// The change whose value it carried.
    let position: Int
  }

  package internal(set) var commands: [Sent] = []
  /// For each gesture, how long after its last change that value, or a newer one, was sent.
  var finalWaits: [Duration] = []
  /// How long a change waited at most until its value, or a newer one, was sent.
  package internal(set) var worstWait = Duration.zero
  /// How many commands waited at once in the lane of the key.
  package internal(set) var mostQueued = 0

  /// The lateness of the final value of the gesture in the middle.
  package var typicalFinal: Duration {
    let sorted = finalWaits.sorted()
    return sorted.isEmpty ? .zero : sorted[(sorted.count - 1) / 2]
  }

  package var worstFinal: Duration { finalWaits.max() ?? .zero }

  /// Whether it is as good as `other` in everything and better in something, to the millisecond.
  func dominates(_ other: TrialOutcome) -> Bool {
    let pairs = zip(figures, other.figures)
    return pairs.allSatisfy { $0 <= $1 } && pairs.contains { $0 < $1 }
  }

  /// What is better when it is less.
  private var figures: [Int64] {
    let durations = [typicalFinal, worstFinal, worstWait]
    return [Int64(commands.count)] + durations.map { ($0.wholeNanoseconds + 500_000) / 1_000_000 }
  }
}

/// The gestures of a recording: changes of one key that follow each other closely.
package struct Gestures: Sendable {
  private let lasts: Set<Int>
  /// For each key, the positions of the first and the last change of each gesture, and their
  /// number.
  private let spans: [Int: [Span]]

  package struct Span: Hashable, Sendable {
    package internal(set) var first: Int
    package internal(set) var last: Int
    package internal(set) var count: Int
  }

  /// A pause of at least `pause` begins another gesture.
  package init(of recording: Recording, pause: Duration) {
    var spans: [Int: [Span]] = [:]
    for (position, entry) in recording.entries.enumerated() where entry.isChange {
      var own = spans[entry.key] ?? []
      if let last = own.last, recording.entries[last.last].at.duration(to: entry.at) < pause {
        own[own.count - 1].last = position
        own[own.count - 1].count += 1
      } else {
        own.append(Span(first: position, last: position, count: 1))
      }
      spans[entry.key] = own
    }
    self.spans = spans
    lasts = Set(spans.values.joined().map(\.last))
  }

  func isLast(_ position: Int) -> Bool { lasts.contains(position) }

  package func of(_ key: Int) -> [Span] { spans[key] ?? [] }

  /// The gesture of a key with the most changes.
  func busiest(of key: Int) -> Span? {
    of(key).reduce(nil) { best, span in (best?.count ?? 0) >= span.count ? best : span }
  }
}
