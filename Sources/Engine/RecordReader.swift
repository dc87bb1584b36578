// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations

/// Reads a stream of records from its leader, in order: first everything, then what is new, when it
/// is woken and every half second.
///
/// A consumer is told at once, and only wakes this one. It may be led by another server than the
/// stream, which may number messages differently, and a write expects the leader's number.
final class RecordReader {
  private static let pace = Duration.milliseconds(500)
  /// How many sequence numbers a round reads again: a new leader may count less than the one
  /// before.
  private static let overlap: UInt64 = 16
  /// One round in so many reads everything: it may count less by any number.
  private static let roundsToAll = 10

  private let api: StreamAPI
  private let filter: String
  private let stream: String
  private var timer: LoopTimer?
  private var next: UInt64 = 1
  private var rounds = 0
  private var isReading = false
  /// Whether there is something new since the question that has no answer yet.
  private var isWoken = false
  private var hasReadAll = false
  private var isEnded = false
  /// Receives each record, some again and again.
  private let onItem: (StreamAPI.Stored) -> Void
  /// Called once, when every record was read.
  private let onRead: () -> Void

  init(
    _ api: StreamAPI,
    of filter: String,
    in stream: String,
    loop: EventLoop,
    onItem: @escaping (StreamAPI.Stored) -> Void,
    onRead: @escaping () -> Void
  ) {
    self.api = api
    self.filter = filter
    self.stream = stream
    self.onItem = onItem
    self.onRead = onRead
    timer = try? loop.makeTimer(named: "records of the cluster") { [unowned self] in
      rounds += 1
      next = rounds.isMultiple(of: Self.roundsToAll) ? 1 : next - min(next - 1, Self.overlap)
      read()
    }
  }

  func start() { read() }

  /// Something new is there.
  func wake() { if isReading { isWoken = true } else { read() } }

  func end() {
    isEnded = true
    timer?.arm(at: nil)
  }

  private func read() {
    guard !isReading, !isEnded else { return }
    isReading = true
    isWoken = false
    api.next(of: filter, from: next, in: stream) { [weak self] in self?.received($0) }
  }

  private func received(_ result: Result<StreamAPI.Stored?, StreamAPI.Problem>) {
    isReading = false
    guard !isEnded else { return }
    switch result {
    case .success(let item?):
      next = item.sequence + 1
      onItem(item)
      return read()
    case .success(nil):
      if isWoken { return read() }
      if !hasReadAll {
        hasReadAll = true
        onRead()
      }
    case .failure: break
    }
    timer?.arm(at: EventLoop.now().advanced(by: Self.pace))
  }
}
