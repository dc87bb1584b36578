// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// The virtual time, the engines that live by it, and what else happens at some moment.
final class ClockHands: Sendable {
  /// Something that happens once.
  struct Timer: Sendable {
    let number: Int
    let deadline: Moment
    let action: @Sendable () -> Void
  }

  private struct Weak {
    weak var engine: (any ServedEngine)?
  }

  private struct State: ~Copyable {
    var now = Moment.zero
    var engines: [Weak] = []
    /// The earliest first; of the same moment in the order in which they came.
    var timers: [Timer] = []
    var newest = 0
  }

  /// Whose turn it is at a moment: timers come before engines.
  private enum Turn {
    case timer(Timer)
    case engine(any ServedEngine, Moment)

    var deadline: Moment {
      switch self {
      case .timer(let timer): timer.deadline
      case .engine(_, let deadline): deadline
      }
    }
  }

  private let state = Locked(State())

  var now: Moment { state.withLock { $0.now } }

  /// When something happens next; `nil` while nothing waits for time.
  var next: Moment? { turn?.deadline }

  func attach(_ engine: any ServedEngine) {
    state.withLock { state in
      state.engines.removeAll { $0.engine == nil }
      state.engines.append(Weak(engine: engine))
    }
  }

  /// Calls `action` when the clock reaches `deadline`; the result is its number.
  func schedule(at deadline: Moment, _ action: @escaping @Sendable () -> Void) -> Int {
    state.withLock { state in
      state.newest += 1
      let place = state.timers.firstIndex { $0.deadline > deadline } ?? state.timers.count
      let timer = Timer(number: state.newest, deadline: deadline, action: action)
      state.timers.insert(timer, at: place)
      return state.newest
    }
  }

  func unschedule(_ number: Int) {
    let removed = state.withLock { state -> Timer? in
      let place = state.timers.firstIndex { $0.number == number }
      return place.map { state.timers.remove(at: $0) }
    }
    withExtendedLifetime(removed) {}
  }

  func advance(to end: Moment) {
    while let turn, turn.deadline <= end {
      move(to: turn.deadline)
      switch turn {
      case .timer(let timer):
        unschedule(timer.number)
        timer.action()
      case .engine(let engine, _): _ = engine.service()
      }
    }
    move(to: end)
  }

  private var turn: Turn? {
    // Engines are let go outside the lock, since one of them may end here.
    let (engines, timer) = state.withLock { ($0.engines.map(\.engine), $0.timers.first) }
    var first = timer.map { Turn.timer($0) }
    for case let engine? in engines {
      guard let deadline = engine.nextDeadline else { continue }
      if let first, first.deadline <= deadline { continue }
      first = .engine(engine, deadline)
    }
    return first
  }

  private func move(to moment: Moment) {
    state.withLock { $0.now = max($0.now, moment) }
  }
}
