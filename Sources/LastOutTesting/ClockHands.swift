// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// The virtual time, and the engines that live by it.
final class ClockHands: Sendable {
  private struct Weak {
    weak var engine: QueueEngine?
  }

  private struct State: ~Copyable {
    var now = Moment.zero
    var engines: [Weak] = []
  }

  private let state = Locked(State())

  var now: Moment { state.withLock { $0.now } }

  func attach(_ engine: QueueEngine) {
    state.withLock { state in
      state.engines.removeAll { $0.engine == nil }
      state.engines.append(Weak(engine: engine))
    }
  }

  /// The engine whose turn is first.
  var next: (engine: QueueEngine, deadline: Moment)? {
    // Engines are let go outside the lock, since one of them may end here.
    let engines = state.withLock { $0.engines.map(\.engine) }
    var first: (engine: QueueEngine, deadline: Moment)?
    for case let engine? in engines {
      guard let deadline = engine.nextDeadline else { continue }
      if let first, first.deadline <= deadline { continue }
      first = (engine, deadline)
    }
    return first
  }

  func advance(to end: Moment) {
    while let (engine, deadline) = next, deadline <= end {
      move(to: deadline)
      _ = engine.service()
    }
    move(to: end)
  }

  private func move(to moment: Moment) {
    state.withLock { $0.now = max($0.now, moment) }
  }
}
