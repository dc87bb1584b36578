// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// The writer's side: work out, results in.
extension JournalPlan {
  /// When ``nextWork(at:)`` has something to say; `nil` while the writer works or nothing waits.
  package var nextDeadline: Moment? {
    guard running == nil else { return nil }
    if fault != nil { return retryAt }
    return wantedAt.map { max($0, earliestCommit) }
  }

  /// The next piece of work, if it is due; its end is told by ``completed(_:at:)``.
  package mutating func nextWork(at now: Moment) -> JournalWork? {
    guard let due = nextDeadline, due <= now else { return nil }
    guard fault == nil else {
      earliestCommit = now.advanced(by: settings.commit)
      return isLoaded ? rebuild() : reopen()
    }
    let batch = cut()
    guard !batch.isEmpty else {
      // What was accepted has been finished meanwhile, and never touched the disk.
      becomeDurable(through: sequence)
      return nil
    }
    earliestCommit = now.advanced(by: settings.commit)
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
      case .commit:
        nextRetry = settings.retry
        settle(ended)
      case .rebuild:
        settleRebuild(ended)
        recover()
      case .reopen: preconditionFailure("Opening ends with what the file holds, or fails.")
      }
      becomeDurable(through: ended.through)
    case .failed(let fault): fail(fault, at: now)
    case .reopened(let contents):
      adopt(contents, at: now)
      recover()
    }
  }

  // MARK: - Cutting

  /// Takes everything that is dirty into one transaction.
  private mutating func cut() -> JournalBatch {
    var batch = JournalBatch()
    var work = Running(through: sequence, kind: .commit)
    for key in takeDirty() {
      guard let slot = slots[key] else { continue }
      if let entry = slot.wanted {
        guard entry.sequence != slot.disk?.sequence else { continue }
        let row = DiskRow(sequence: entry.sequence, expiresAt: entry.expiresAt)
        batch.puts.append(entry)
        work.puts.append((key, row))
        // Until the commit has ended the disk may have either.
        slots[key]?.disk = slot.disk.map { Self.either($0, row) } ?? row
      } else if slot.disk != nil {
        batch.removals.append(key)
        work.removals.append(key)
      } else if slot.isEmpty {
        slots[key] = nil
      }
    }
    if !batch.isEmpty { running = work }
    return batch
  }

  /// Takes every value that a restart should send.
  private mutating func rebuild() -> JournalWork {
    var work = Running(through: sequence, kind: .rebuild)
    var entries: [JournalEntry] = []
    _ = takeDirty()
    for (key, slot) in slots {
      guard let entry = slot.wanted else { continue }
      let row = DiskRow(sequence: entry.sequence, expiresAt: entry.expiresAt)
      entries.append(entry)
      work.puts.append((key, row))
      slots[key]?.disk = slot.disk.map { Self.either($0, row) } ?? row
    }
    entries.sort { $0.sequence < $1.sequence }
    running = work
    return .rebuild(entries)
  }

  private mutating func reopen() -> JournalWork {
    running = Running(through: durableThrough, kind: .reopen)
    return .reopen
  }

  private mutating func takeDirty() -> [String] {
    var keys: [String] = []
    swap(&keys, &dirty)
    for key in keys { slots[key]?.isDirty = false }
    wantedAt = nil
    return keys
  }

  /// What is known of a row that was or was not replaced.
  private static func either(_ old: DiskRow, _ new: DiskRow) -> DiskRow {
    var expiresAt: Moment?
    if let first = old.expiresAt, let second = new.expiresAt { expiresAt = max(first, second) }
    return DiskRow(sequence: min(old.sequence, new.sequence), expiresAt: expiresAt)
  }

  // MARK: - Results

  private mutating func settle(_ ended: Running) {
    for (key, row) in ended.puts { slots[key]?.disk = row }
    for key in ended.removals { forgetRow(of: key) }
  }

  private mutating func settleRebuild(_ ended: Running) {
    let written = Set(ended.puts.lazy.map(\.key))
    for key in Array(slots.keys) where !written.contains(key) { forgetRow(of: key) }
    for (key, row) in ended.puts { slots[key]?.disk = row }
  }

  private mutating func forgetRow(of key: String) {
    slots[key]?.disk = nil
    if slots[key]?.isEmpty == true { slots[key] = nil }
  }

  private mutating func becomeDurable(through: UInt64) {
    guard through > durableThrough else { return }
    durableThrough = through
    news.append(.durable(through: through))
  }

  private mutating func recover() {
    fault = nil
    news.append(.recovered)
  }

  /// Nothing that was not durable before is; the next attempt starts from what is in memory.
  mutating func fail(_ fault: JournalFault, at now: Moment) {
    let isNew = self.fault != fault
    self.fault = fault
    retryAt = now.advanced(by: nextRetry)
    nextRetry = min(nextRetry * 2, settings.longestRetry)
    guard isNew else { return }
    let overtaken = slots.filter { _, slot in
      guard let entry = slot.wanted, let disk = slot.disk else { return false }
      return disk.sequence < entry.sequence && disk.isLive(at: now)
    }
    news.append(
      .memoryOnly(through: sequence, fault: fault, overtaken: overtaken.keys.sorted())
    )
  }

  /// The file could be opened after all: what it holds is older than anything accepted since.
  private mutating func adopt(_ contents: JournalContents, at now: Moment) {
    isLoaded = true
    nextRetry = settings.retry
    if let found = contents.setAside { news.append(.setAside(found)) }
    for entry in contents.entries {
      // A key that this process has taken a value for has something newer, sent or not.
      let isOvertaken = slots[entry.key] != nil
      var slot = slots[entry.key] ?? Slot()
      if !isOvertaken {
        sequence += 1
        slot.newest = entry
        slot.newest?.sequence = sequence
        undecided += slot.newest.map { [$0] } ?? []
      }
      slot.disk = DiskRow(sequence: 0, expiresAt: nil)
      slots[entry.key] = slot
    }
    for key in slots.keys.sorted() { touch(key) }
    if !dirty.isEmpty { want(at: now) }
    earliestCommit = min(earliestCommit, now)
  }
}
