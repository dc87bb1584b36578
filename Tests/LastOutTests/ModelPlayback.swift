// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting

/// Plays a timeline through the slow model, on virtual time of its own.
struct ModelPlayback {
  typealias Player = TimelinePlayer<String>

  private var model: SlowModel
  private let keys: [String]
  private let runDuration: UInt64
  private var now: UInt64 = 0
  private var values: [String] = []
  private var running: [(index: Int, end: UInt64)] = []
  private var runs: [String] = []

  init(rules: [String: SlowModel.Rule], runDuration: UInt64) {
    keys = rules.keys.sorted()
    model = SlowModel(rules: keys.compactMap { rules[$0] })
    self.runDuration = runDuration
  }

  /// The runs as `time key=value collapsed`, sorted.
  mutating func play(_ events: [Player.Event]) -> [String] {
    for event in events {
      let moment = UInt64(event.at.wholeNanoseconds)
      if moment > now { advance(to: moment) }
      apply(event.step)
    }
    advance(to: nil)
    return runs.sorted()
  }

  private var next: UInt64? {
    let dues = model.keys.filter { $0.value != nil && !$0.isRunning }.map(\.due)
    return (dues + running.map(\.end)).min()
  }

  private mutating func advance(to end: UInt64?) {
    while let next, next <= end ?? next {
      now = max(now, next)
      while let first = running.first, first.end <= now {
        running.removeFirst()
        model.finish(first.index)
      }
      while let index = model.due(at: now).first { start(index) }
    }
    if let end { now = end }
  }

  private mutating func apply(_ step: Player.Step) {
    switch step {
    case .set(let key, let value, let delay):
      values.append(value)
      let delay = delay.map { UInt64($0.wholeNanoseconds) }
      let index = place(of: key)
      _ = model.enqueue(values.count - 1, for: index, at: now, delay: delay)
      if model.keys[index].isUrgent, model.due(at: now).contains(index) { start(index) }
    case .cancel(let key): _ = model.cancel(place(of: key))
    case .cancelAll: for index in model.keys.indices { _ = model.cancel(index) }
    case .flush(let key): flush(place(of: key))
    case .flushAll: for index in model.keys.indices { flush(index) }
    }
  }

  private mutating func flush(_ index: Int) {
    guard model.keys[index].value != nil else { return }
    if model.keys[index].isRunning { model.markDue(index, at: now) } else { start(index) }
  }

  private mutating func start(_ index: Int) {
    let run = model.take(index, at: now)
    runs.append("\(now) \(keys[index])=\(run.value.map { values[$0] } ?? "none") \(run.collapsed)")
    if runDuration == 0 { model.finish(index) } else { running.append((index, now + runDuration)) }
  }

  private func place(of key: String) -> Int { keys.firstIndex(of: key) ?? 0 }
}
