// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// What the host of a ``SessionSchedule`` must do.
package enum SessionEffect: Hashable, Sendable {
  /// Connect the session of a partition; report it by ``SessionSchedule/connected(_:at:)``, its end
  /// or a failure by ``SessionSchedule/ended(_:at:)``.
  case start(Partition)
  /// An attempt to connect has failed some time ago.
  case failed(Partition)
}

/// Decides when the sessions of partitions are connected at the broker: a few at a time, and one
/// that ends again and again less and less often.
///
/// It has no clock and does no I/O. After any call the owner calls ``advance(to:)`` and arms a timer
/// for ``nextDeadline``.
package struct SessionSchedule: Sendable {
  private enum State {
    case connecting
    case connected(since: Moment)
    /// It could not be connected, which is reported at `until`.
    case failed(until: Moment)
  }

  /// How many connections are made at the same time.
  package static let connectsAtOnce = 4
  /// The wait after an attempt that failed.
  package static let pause = Duration.seconds(1)
  /// A session that ends sooner after it was connected has a short life.
  private static let shortLife = Duration.seconds(5)

  /// The sessions to connect, each not before a time.
  private var queue: [(partition: Partition, from: Moment)] = []
  private var states: [Partition: State] = [:]
  /// How often in a row the session of a partition had a short life.
  private var shortLives: [Partition: Int] = [:]

  package init() {}

  /// Connects the session of a partition as soon as possible: one with several short lives up to
  /// eight seconds later.
  package mutating func connect(_ partition: Partition, at now: Moment) {
    close(partition)
    let count = shortLives[partition] ?? 0
    let wait: Duration = count > 1 ? .milliseconds(250 << min(count - 2, 5)) : .zero
    queue.append((partition, now.advanced(by: wait)))
  }

  /// The broker has accepted a session.
  package mutating func connected(_ partition: Partition, at now: Moment) {
    states[partition] = .connected(since: now)
  }

  /// A session has ended, or could not be connected.
  ///
  /// - Returns: How many short lives in a row it had; `nil` if it could not be connected, or was
  ///   closed before: ``SessionEffect/failed(_:)`` follows in the first case.
  package mutating func ended(_ partition: Partition, at now: Moment) -> Int? {
    switch states.removeValue(forKey: partition) {
    case .connecting:
      states[partition] = .failed(until: now.advanced(by: Self.pause))
      return nil
    case .connected(let since):
      let isShort = since.duration(to: now) < Self.shortLife
      let count = isShort ? (shortLives[partition] ?? 0) + 1 : 0
      shortLives[partition] = count
      return count
    case .failed, nil: return nil
    }
  }

  /// Forgets a session, whether it waits, is connected, or has failed.
  package mutating func close(_ partition: Partition) {
    queue.removeAll { $0.partition == partition }
    states[partition] = nil
  }

  /// Returns what is due.
  package mutating func advance(to now: Moment) -> [SessionEffect] {
    var effects: [SessionEffect] = []
    for (partition, state) in states.sorted(by: { $0.key < $1.key }) {
      guard case .failed(let until) = state, until <= now else { continue }
      states[partition] = nil
      effects.append(.failed(partition))
    }
    while hasRoom, let place = queue.firstIndex(where: { $0.from <= now }) {
      let partition = queue.remove(at: place).partition
      states[partition] = .connecting
      effects.append(.start(partition))
    }
    return effects
  }

  private var hasRoom: Bool {
    let count = states.values.count { if case .connecting = $0 { true } else { false } }
    return count < Self.connectsAtOnce
  }

  /// When ``advance(to:)`` has something to do.
  package var nextDeadline: Moment? {
    let failures = states.values.compactMap { state -> Moment? in
      if case .failed(let until) = state { until } else { nil }
    }
    return (failures + (hasRoom ? queue.map(\.from) : [])).min()
  }
}
