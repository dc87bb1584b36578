// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import LastOut
import LastOutTesting

/// A journal's file and its writer on simulated time: the written rows, the rows after a power cut,
/// and one piece of work in progress.
struct SimulatedDisk: Sendable {
  typealias Rows = [String: JournalEntry]

  private struct Work: Sendable {
    var rows: Rows
    /// When other processes would read the new rows; `nil`: never.
    var writtenAt: Moment?
    /// When a power cut would leave them; `nil`: never.
    var syncedAt: Moment?
    var endsAt: Moment
    var fault: JournalFault?
    /// Whether it opens the file.
    var isOpening = false
  }

  private var random: SeededGenerator
  private(set) var clocks = SimulatedClocks()
  /// The rows that the next process reads.
  private(set) var written: Rows = [:]
  /// The possible rows after a power cut; more than one while it is uncertain.
  private(set) var synced: [Rows] = [[:]]
  private var work: Work?
  private var trouble: DiskFault?
  /// Whether the last work failed.
  private(set) var isFailing = false
  private var troubleEnds = Moment.zero
  /// Until when the file cannot be opened; `nil` if it is open.
  private var opensAt: Moment?

  /// How long a piece of work takes, in milliseconds.
  private let commit: ClosedRange<Int>

  init(seed: UInt64, commit: ClosedRange<Int> = 1...25) {
    random = SeededGenerator(life: seed ^ 0xD15C)
    self.commit = commit
  }

  var isBusy: Bool { work != nil }
  var endsAt: Moment? { work?.endsAt }
  /// The rows that the work in progress writes.
  var rowsInProgress: Rows { work?.rows ?? [:] }

  mutating func startFault(_ trouble: DiskFault, until end: Moment) {
    self.trouble = trouble
    troubleEnds = end
  }

  /// Makes the file of a new process impossible to open until `moment`.
  mutating func stayClosed(until moment: Moment) {
    opensAt = moment
    isFailing = true
  }

  mutating func heal() {
    trouble = nil
    if opensAt != nil { opensAt = .zero }
  }

  mutating func sleep(for duration: Duration) { clocks.sleep(for: duration) }

  // MARK: - Work

  mutating func begin(_ task: JournalWork, at now: Moment) {
    if troubleEnds <= now { trouble = nil }
    if let opensAt {
      let end = now.advanced(by: .milliseconds(random.within(1...50)))
      let fault: JournalFault? = opensAt <= now ? nil : .readOnly
      work = Work(rows: written, endsAt: end, fault: fault, isOpening: true)
      return
    }
    var rows = written
    let clock = clocks.read(at: now)
    switch task {
    case .commit(let batch):
      for key in batch.removals { rows[key] = nil }
      for entry in batch.puts { rows[entry.key] = stored(entry, clock) }
    case .rebuild(let entries):
      rows = [:]
      for entry in entries { rows[entry.key] = stored(entry, clock) }
    case .reopen: preconditionFailure("The file is open.")
    }
    let length = random.within(trouble == .slow ? 100...3000 : commit)
    let end = now.advanced(by: .milliseconds(length))
    func part(_ percent: ClosedRange<Int>) -> Moment {
      now.advanced(by: .microseconds(length * 10 * random.within(percent)))
    }
    let writtenAt = part(10...60)
    switch trouble {
    case nil, .slow:
      work = Work(rows: rows, writtenAt: writtenAt, syncedAt: part(60...100), endsAt: end)
    case .full: work = Work(rows: rows, endsAt: end, fault: .diskFull)
    case .failingSync:
      let fault = JournalFault.failed(call: "fsync", reason: "Input/output error")
      // It is unknown how far it got.
      let reached = random.chance(70) ? writtenAt : nil
      work = Work(rows: rows, writtenAt: reached, endsAt: end, fault: fault)
    }
  }

  /// The row of an entry as the store writes it.
  private func stored(_ entry: JournalEntry, _ clock: JournalClock) -> JournalEntry {
    var row = entry
    switch entry.origin {
    case .accepted(let moment): row.origin = .stored(clock.stamps(at: moment))
    case .stored: break
    }
    return row
  }

  /// Advances the time; returns the result of the work, if it has ended.
  mutating func advance(to now: Moment) -> JournalResult? {
    guard let current = work else { return nil }
    if let moment = current.writtenAt, moment <= now {
      written = current.rows
      work?.writtenAt = nil
      // The sync that follows may have been cut short.
      if !synced.contains(current.rows) { synced.append(current.rows) }
    }
    if let moment = current.syncedAt, moment <= now {
      synced = [current.rows]
      work?.syncedAt = nil
    }
    guard current.endsAt <= now else { return nil }
    work = nil
    isFailing = current.fault != nil
    if let fault = current.fault { return .failed(fault) }
    guard current.isOpening else { return .done }
    opensAt = nil
    return .reopened(contents)
  }

  /// What a process reads that opens the file.
  var contents: JournalContents {
    JournalContents(entries: written.values.sorted { $0.sequence < $1.sequence })
  }

  // MARK: - Ends

  /// Ends the process or the machine; ``contents`` are then what the next process reads.
  mutating func restart(after end: GatewayEnd, at now: Moment, start: Moment) {
    _ = advance(to: now)
    work = nil
    isFailing = false
    opensAt = nil
    switch end {
    case .shutdown, .killed: break
    case .powerCut(let clockSet, let isFrozen):
      written = synced[random.below(synced.count)]
      clocks.reboot(at: start, after: now, clockSet: clockSet, isFrozen: isFrozen)
      trouble = nil
    }
    // Opening syncs the rows that it read: none of them may be lost.
    synced = [written]
  }
}
