// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations

/// Reads a stream of records from its leader, in order: first everything, then what is new, every half
/// second.
///
/// A consumer is quicker, and cannot be relied on alone: one that is led by a server whose copy of the
/// stream has fallen behind shows signs of life and nothing else.
final class RecordReader {
  private static let pace = Duration.milliseconds(500)
  /// How many sequence numbers a round reads again: a new leader may count a few less than the one before.
  private static let overlap: UInt64 = 16

  private let api: StreamAPI
  private let filter: String
  private let stream: String
  private var timer: LoopTimer?
  private var next: UInt64 = 1
  private var isReading = false
  private var hasReadAll = false
  private var isEnded = false
  /// Whether this round has found anything.
  private var hasFound = false
  /// Receives each record; `false` if it was known.
  private let onItem: (StreamAPI.Stored) -> Bool
  /// Called once, when every record was read.
  private let onRead: () -> Void
  /// Called after a round; `hasFound` says whether it found what was not known.
  private let onRound: (_ hasFound: Bool) -> Void

  init(
    _ api: StreamAPI,
    of filter: String,
    in stream: String,
    loop: EventLoop,
    onItem: @escaping (StreamAPI.Stored) -> Bool,
    onRead: @escaping () -> Void,
    onRound: @escaping (_ hasFound: Bool) -> Void
  ) {
    self.api = api
    self.filter = filter
    self.stream = stream
    self.onItem = onItem
    self.onRead = onRead
    self.onRound = onRound
    timer = try? loop.makeTimer(named: "records of the cluster") { [unowned self] in read() }
  }

  func start() { read() }

  func end() {
    isEnded = true
    timer?.arm(at: nil)
  }

  private func read() {
    guard !isReading, !isEnded else { return }
    isReading = true
    api.next(of: filter, from: next, in: stream) { [weak self] in self?.received($0) }
  }

  private func received(_ result: Result<StreamAPI.Stored?, StreamAPI.Problem>) {
    isReading = false
    guard !isEnded else { return }
    switch result {
    case .success(let item?):
      next = item.sequence + 1
      if onItem(item) { hasFound = true }
      return read()
    case .success(nil):
      next -= min(next - 1, Self.overlap)
      if !hasReadAll {
        hasReadAll = true
        onRead()
      }
      onRound(hasFound)
      hasFound = false
    case .failure: break
    }
    timer?.arm(at: EventLoop.now().advanced(by: Self.pace))
  }
}
