// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Durability
@testable import Engine
import LastOut

/// The log of a partition: each part of the input is the bytes of a frame.
///
/// What can be read is written as bytes that read the same; a new owner that finds these frames
/// opens the log, or leaves it to a newer owner.
enum FramesTarget {
  static let run: @Sendable ([UInt8]) -> Void = { bytes in
    var stored: [StoredFrame] = []
    for part in Parts.of(bytes) {
      guard let frame = FrameCoding.frame(part) else { continue }
      let written = FrameCoding.bytes(frame)
      precondition(FrameCoding.frame(written) == frame, "A frame reads as another.")
      let number = Int64(stored.count)
      stored.append(
        StoredFrame(sequence: UInt64(number) + 1, storedAt: number * 1_000_000, frame: frame)
      )
    }
    open(stored)
  }

  private static let partition = Partition(3)
  private static let clock = JournalClock(
    moment: Moment(nanoseconds: 1_000_000_000),
    stamps: JournalStamps(
      boot: BootIdentifier(high: 1, low: 2),
      bootMilliseconds: 1000,
      wallMilliseconds: 1_800_000_000_000
    )
  )

  /// Opens a log of these frames as an owner whose epoch is neither the first nor the last.
  private static func open(_ frames: [StoredFrame]) {
    var log = frames
    let epoch: UInt64 = 9
    var logs = PartitionLogs(member: "a") { _ in partition }
    logs.open(partition, epoch: epoch)
    var isOpen = false
    // A log is read with three questions; more would be a loop.
    for _ in 0..<8 {
      for effect in logs.dequeueEffects() {
        switch effect {
        case .readLast(_, let epoch):
          logs.readLast(
            partition,
            epoch: epoch,
            log.last.map { .frame($0) } ?? .empty,
            clock: clock
          )
        case .append(_, let frame, let before):
          precondition(
            before.revision == log.last?.sequence ?? 0
              && before.count == log.last?.frame.number ?? 0
              && frame.number == before.count &+ 1,
            "It appends behind the last frame."
          )
          let sequence = before.revision + 1
          log.append(StoredFrame(sequence: sequence, storedAt: .max, frame: frame))
          logs.appended(partition, epoch: epoch, .stored(revision: sequence), clock: clock)
        case .read(_, let epoch, let first, let last):
          let found = log.filter { $0.sequence >= first && $0.sequence <= last }
          logs.read(partition, epoch: epoch, .frames(found), clock: clock)
        case .opened(_, _, let entries):
          isOpen = true
          precondition(Set(entries.map(\.key)).count == entries.count, "A key has two values.")
        case .lost:
          precondition(frames.contains { $0.frame.epoch >= epoch }, "Nobody has taken it.")
          return
        case .purge, .finished, .unreadable, .shortened: break
        }
      }
    }
    precondition(isOpen, "The log is neither opened nor lost.")
  }
}
