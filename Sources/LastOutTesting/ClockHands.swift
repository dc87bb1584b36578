// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// The virtual time, its engines and its timers.
final class ClockHands: Sendable {
  /// A one-shot timer.
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
    /// The timers in order of their deadlines, then of their creation.
    var timers: [Timer] = []
    var newest = 0
  }

  /// The next timer or engine; timers precede engines.
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

  /// The next deadline; `nil` if there is none.
  var next: Moment? { turn?.deadline }

  func attach(_ engine: any ServedEngine) {
    state.withLock { state in
      state.engines.removeAll { $0.engine == nil }
      state.engines.append(Weak(engine: engine))
    }
  }

  /// Calls `action` when the clock reaches `deadline`; returns the number of the timer.
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
    // Engines are released outside the lock, because this may end one.
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
