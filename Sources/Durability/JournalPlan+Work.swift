// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// The writer's side: work out, results in.
extension JournalPlan {
  /// When ``nextWork(at:value:)`` is due; `nil` while the writer works or nothing waits.
  package var nextDeadline: Moment? {
    guard running == nil else { return nil }
    return schedule.deadline(afterFault: fault != nil)
  }

  /// The next piece of work, if it is due; ``completed(_:at:)`` reports its end.
  ///
  /// `value` returns the owner's values to write, by key and sequence number.
  package mutating func nextWork(
    at now: Moment,
    value: (JournalKey, UInt64) -> any JournalValue
  ) -> JournalWork? {
    guard let due = nextDeadline, due <= now else { return nil }
    guard fault == nil else {
      schedule.began(at: now)
      return isLoaded ? rebuild(value) : reopen()
    }
    let batch = makeBatch(value)
    guard !batch.isEmpty else {
      // What was accepted has ended meanwhile and never touched the disk.
      reportDurable(through: sequence)
      return nil
    }
    schedule.began(at: now)
    return .commit(batch)
  }

  /// The writer has ended its work.
  package mutating func completed(_ result: JournalResult, at now: Moment) {
    guard let ended = running else {
      preconditionFailure("The writer ended work that it was not given.")
    }
    running = nil
    switch result {
    case .done:
      switch ended.kind {
      case .commit: schedule.succeeded()
      case .rebuild:
        keys.removeRows()
        recover()
      case .reopen: preconditionFailure("Opening ends with what the file holds, or fails.")
      }
      for (key, row) in ended.puts { self[key].disk = row }
      for key in ended.removals { self[key].disk = nil }
      reportDurable(through: ended.through)
    case .failed(let fault): fail(fault, at: now)
    case .reopened(let contents):
      adopt(contents, at: now)
      recover()
    }
  }

  // MARK: - Work

  /// Collects every difference between the disk and what it should hold into one transaction.
  private mutating func makeBatch(_ value: (JournalKey, UInt64) -> any JournalValue) -> JournalBatch
  {
    var batch = JournalBatch()
    var work = Running(through: sequence, kind: .commit)
    for key in dequeueDirty() {
      if let wanted = self[key].wanted {
        guard wanted.sequence != self[key].disk?.sequence else { continue }
        batch.puts.append(entry(wanted, of: key, value))
        work.puts.append((key, wanted.row))
        // Until the commit has ended the disk may have either.
        self[key].disk = self[key].disk.map { DiskRow.either($0, wanted.row) } ?? wanted.row
      } else if self[key].disk != nil {
        batch.removals.append(keys.name(of: key))
        work.removals.append(key)
      }
    }
    if !batch.isEmpty { running = work }
    return batch
  }

  /// Collects every value that a restart should send.
  private mutating func rebuild(_ value: (JournalKey, UInt64) -> any JournalValue) -> JournalWork {
    var work = Running(through: sequence, kind: .rebuild)
    var entries: [JournalEntry] = []
    _ = dequeueDirty()
    for key in keys.all {
      guard let wanted = self[key].wanted else { continue }
      entries.append(entry(wanted, of: key, value))
      work.puts.append((key, wanted.row))
      self[key].disk = self[key].disk.map { DiskRow.either($0, wanted.row) } ?? wanted.row
    }
    entries.sort { $0.sequence < $1.sequence }
    running = work
    return .rebuild(entries)
  }

  private mutating func reopen() -> JournalWork {
    running = Running(through: durableThrough, kind: .reopen)
    return .reopen
  }

  private func entry(
    _ wanted: KeptValue,
    of key: JournalKey,
    _ value: (JournalKey, UInt64) -> any JournalValue
  ) -> JournalEntry {
    wanted.entry(of: keys.name(of: key)) { value(key, wanted.sequence) }
  }

  private mutating func dequeueDirty() -> [JournalKey] {
    schedule.collected()
    return keys.dequeueDirty()
  }

  // MARK: - Results

  private mutating func reportDurable(through: UInt64) {
    guard through > durableThrough else { return }
    durableThrough = through
    events.append(.durable(through: through))
  }

  private mutating func recover() {
    fault = nil
    events.append(.recovered)
  }

  /// Only what was durable before is; the next attempt starts from the values in memory.
  mutating func fail(_ fault: JournalFault, at now: Moment) {
    let isNew = self.fault != fault
    self.fault = fault
    schedule.failed(at: now)
    guard isNew else { return }
    let overtaken = keys.all.filter { key in
      guard let wanted = self[key].wanted else { return false }
      return holdsOlder(key, than: wanted.sequence, at: now)
    }
    events.append(
      .memoryOnly(through: sequence, fault: fault, overtaken: overtaken.map(keys.name).sorted())
    )
  }

  /// The file could be opened after all: what it holds is older than anything accepted since.
  private mutating func adopt(_ contents: JournalContents, at now: Moment) {
    isLoaded = true
    schedule.succeeded()
    if let found = contents.setAside { events.append(.setAside(found)) }
    for (place, entry) in contents.entries.enumerated() {
      let key = number(of: entry.key)
      // A key of which this process has accepted a value has something newer, sent or not; so has
      // one whose values a command of another key ends.
      if self[key].isEmpty {
        var entry = entry
        entry.sequence = UInt64(place) + 1
        self[key].newest = KeptValue(entry)
        self[key].isUnresumed = true
        undecided.append(entry)
        replayDeadline = now
      }
      // What it holds is unknown where it is not resumed.
      let isUrgent = !self[key].isUnresumed
      self[key].disk = DiskRow(sequence: 0, expiresAt: nil, isUrgent: isUrgent)
    }
    for key in keys.all.filter({ !self[$0].isEmpty }).sorted(by: {
      keys.name(of: $0) < keys.name(of: $1)
    }) {
      keys.markDirty(key)
    }
    if keys.hasDirty { schedule.want(at: now) }
    schedule.hurry(at: now)
  }
}
