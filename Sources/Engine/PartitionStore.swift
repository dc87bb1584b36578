// Settle
// SPDX-License-Identifier: Apache-2.0

package import Cluster
package import Durability
package import LastOut

/// The accepted values of the partitions that this member of a cluster owns, in the logs of its
/// engine: carries out what ``PartitionLogs`` decides.
package final class PartitionStore: ValueStore {
  private let engine: ClusterEngine
  private let clock: () -> JournalClock
  private var logs: PartitionLogs
  private var results: [JournalResult] = []
  package private(set) var isClosed = false
  /// A partition can be written, and earlier owners left these values; call ``adopted(_:epoch:)``
  /// when the owner has taken them over.
  package var onOpened: ((Partition, _ epoch: UInt64, [JournalEntry]) -> Void)?
  /// A newer owner has claimed a partition.
  package var onLost: ((Partition, _ epoch: UInt64) -> Void)?
  /// The log of a partition has an entry that this version cannot read.
  package var onUnreadable: ((Partition, _ epoch: UInt64) -> Void)?
  /// The engine has lost frames of a partition that it had acknowledged; they are written again.
  package var onShortened: ((Partition) -> Void)?
  /// This machine's clock is so much ahead of that of the engine's server; negative: behind.
  package var onClockDifference: ((Duration) -> Void)?
  /// In milliseconds; reading takes a part of it.
  private static let usualDifference: UInt64 = 60_000
  /// Every partition must be given back; ``close()`` ends that.
  package var onClosing: (() -> Void)?

  /// `clock` reads every clock, and `partition` returns that of a key.
  package init(
    _ engine: ClusterEngine,
    member: String,
    clock: @escaping () -> JournalClock,
    partition: @escaping @Sendable (_ key: String) -> Partition
  ) {
    self.engine = engine
    self.clock = clock
    logs = PartitionLogs(member: member, partition: partition)
  }

  // MARK: - Partitions

  /// Claims the log of a partition and reads it; ``onOpened``, ``onLost`` or ``onUnreadable``
  /// follows.
  package func open(_ partition: Partition, epoch: UInt64) { logs.open(partition, epoch: epoch) }

  /// The owner has what ``onOpened`` has brought.
  package func adopted(_ partition: Partition, epoch: UInt64) {
    logs.adopted(partition, epoch: epoch)
  }

  /// Forgets a partition: another member has it, or will.
  package func close(_ partition: Partition) { logs.close(partition) }

  // MARK: - Work

  package func submit(_ work: JournalWork) { logs.submit(work, clock: clock()) }

  package func dequeueResults() -> [JournalResult] { exchange(&results, with: []) }

  package func beginClosing() { if !isClosed { onClosing?() } }

  /// Every partition was given back.
  package func close() { isClosed = true }

  // MARK: - Time

  package var nextDeadline: Moment? { logs.nextDeadline }

  /// Performs what was decided.
  ///
  /// - Returns: Whether there was anything.
  package func advance(to now: Moment) -> Bool {
    if let due = logs.nextDeadline, due <= now { logs.advance(to: now) }
    let effects = logs.dequeueEffects()
    for effect in effects { perform(effect) }
    return !effects.isEmpty
  }

  private func perform(_ effect: LogEffect) {
    switch effect {
    case .append(let partition, let frame, let predecessor):
      engine.append(frame, to: partition, after: predecessor) { [weak self] outcome in
        guard let self else { return }
        logs.appended(partition, epoch: frame.epoch, outcome, clock: clock())
      }
    case .readLast(let partition, let epoch):
      engine.readLast(partition) { [weak self] end in
        guard let self else { return }
        logs.readLast(partition, epoch: epoch, end, clock: clock())
      }
    case .read(let partition, let epoch, let first, let last):
      engine.read(partition, from: first, through: last) { [weak self] part in
        guard let self else { return }
        if case .frames(let frames) = part, let claim = frames.last {
          compareClocks(claim.storedAt)
        }
        logs.read(partition, epoch: epoch, part, clock: clock())
      }
    case .purge(let partition, let first): engine.purge(partition, before: first)
    case .finished(let result): results.append(result)
    case .opened(let partition, let epoch, let entries): onOpened?(partition, epoch, entries)
    case .lost(let partition, let epoch): onLost?(partition, epoch)
    case .unreadable(let partition, let epoch): onUnreadable?(partition, epoch)
    case .shortened(let partition): onShortened?(partition)
    }
  }

  /// Compares this machine's clock with the engine's time of a claim, which was stored just now.
  ///
  /// Nothing here relies on them to agree. The ages of values are differences of the engine's
  /// times, and wrong where its servers differ.
  private func compareClocks(_ storedAt: Int64) {
    let difference = clock().stamps.wallMilliseconds - storedAt / 1_000_000
    if difference.magnitude > Self.usualDifference {
      onClockDifference?(.milliseconds(difference))
    }
  }
}
