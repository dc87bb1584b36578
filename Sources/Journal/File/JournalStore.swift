// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability

/// The journal's files: opens, checks, replaces and writes them; used by one thread at a time.
///
/// Beside `PATH` lie `PATH-wal` (SQLite's log), `PATH-lock`, for moments `PATH.building` and
/// `PATH.new`, and after damage `PATH.damaged-N`. A complete `PATH.new` always wins over `PATH`:
/// that is how one file replaces another together with its log, whenever the power goes.
struct JournalStore: ~Copyable, Sendable {
  /// As it was configured.
  private let configuredPath: String
  private let vfs: String?
  private var path: String
  private var lock: FileLock?
  private var file: JournalFile?
  /// What went wrong after the last write had succeeded; told with the next.
  private var belated: JournalFault?

  init(path: String, vfs: String? = nil) {
    configuredPath = path
    self.vfs = vfs
    self.path = path
  }

  /// Opens the file, or makes it; a damaged one is set aside first.
  mutating func open(clock: JournalClock) throws(JournalProblem) -> JournalContents {
    file = nil
    path = try JournalProblem.faults { () throws(JournalFault) in
      try Files.resolved(configuredPath)
    }
    for suffix in ["", "-wal", "-lock", ".building", ".building-journal", ".new"] {
      try check(path + suffix)
    }
    try refuseForeign()
    if lock == nil { lock = try FileLock(of: path) }
    do throws(JournalFault) {
      try finishReplacement()
      return try openOrReplace(clock)
    } catch {
      throw .fault(error)
    }
  }

  /// Writes a batch; when this returns it is on the disk.
  mutating func write(_ batch: JournalBatch, clock: JournalClock) throws(JournalFault) {
    guard file != nil else {
      throw belated ?? .failed(call: "write", reason: "the journal is not open")
    }
    do throws(SQLiteError) {
      try file?.write(batch, clock: clock)
    } catch {
      file = nil  // Closing writes nothing.
      throw error.fault
    }
  }

  /// Copies the log into the file when it has grown enough; what was written is durable anyway.
  ///
  /// A failure shows with the next write.
  mutating func tidy() {
    do throws(SQLiteError) {
      try file?.tidy()
    } catch {
      file = nil  // Closing writes nothing.
      belated = error.fault
    }
  }

  /// Puts a new file with exactly `entries` in place of the old one and opens it.
  mutating func rebuild(
    _ entries: [JournalEntry],
    clock: JournalClock
  ) throws(JournalFault) {
    file = nil  // Closing writes nothing.
    try replace(with: entries, clock)
    file = try openFile()
  }

  /// Closes the file and lets others have it.
  mutating func close() {
    try? file?.checkpoint()  // Only saves the next start some work.
    file = nil
    lock = nil
  }

  // MARK: - Opening

  /// Refuses what must not be trusted, or written to.
  private func check(_ path: String) throws(JournalProblem) {
    let found = try JournalProblem.faults { () throws(JournalFault) in try Files.status(path) }
    guard let status = found else { return }
    if status.isLink { throw .refused(.symbolicLink(path: path)) }
    guard status.isRegular else { throw .refused(.notARegularFile(path: path)) }
    let user = Files.effectiveUser
    guard status.owner == user else {
      throw .refused(.foreignOwner(path: path, owner: status.owner, expected: user))
    }
    guard status.permissions & 0o077 == 0 else {
      throw .refused(.openToOthers(path: path, mode: status.permissions))
    }
  }

  /// Refuses a file of a newer version or another program, which is not even opened.
  private func refuseForeign() throws(JournalProblem) {
    let head = try JournalProblem.faults { () throws(JournalFault) in
      try Files.status(path) == nil ? nil : try Files.head(of: path, count: 100)
    }
    guard let head else { return }
    switch JournalFormat.judge(head) {
    case .ours, .damaged: return
    case .foreign: throw .refused(.notAJournal(path: path))
    case .newer(let found):
      throw .refused(.newerFormat(path: path, found: found, supported: JournalFormat.version))
    }
  }

  private mutating func openOrReplace(_ clock: JournalClock) throws(JournalFault) -> JournalContents
  {
    var contents = JournalContents()
    let size = try Files.status(path)?.size
    let hasContent = if size == 0 { try hasLog() } else { size != nil }
    guard hasContent else {
      try replace(with: [], clock)
      file = try openFile()
      return contents
    }
    var damage = ""
    if JournalFormat.judge(try Files.head(of: path, count: 100)) != .ours {
      damage = "its head"
    } else if let found = LogCheck.damage(in: try log()) {
      damage = found
    } else {
      do throws(SQLiteError) {
        let opened = try JournalFile(path, vfs: vfs)
        contents.entries = try opened.entries()
        file = consume opened
      } catch {
        guard error.isDamage else { throw error.fault }
        damage = error.message
      }
    }
    guard file == nil else {
      try extendLog()
      return contents
    }
    contents.entries = []
    contents.setAside = SetAside(path: try setAside(), reason: damage)
    try replace(with: [], clock)
    file = try openFile()
    return contents
  }

  private func openFile() throws(JournalFault) -> JournalFile {
    let opened: JournalFile
    do throws(SQLiteError) { opened = try JournalFile(path, vfs: vfs) } catch { throw error.fault }
    try extendLog()
    return opened
  }

  private func hasLog() throws(JournalFault) -> Bool {
    try (Files.status(path + "-wal")?.size ?? 0) > 0
  }

  private func log() throws(JournalFault) -> [UInt8] {
    guard let size = try Files.status(path + "-wal")?.size else { return [] }
    return try Files.head(of: path + "-wal", count: size)
  }

  /// Gives the log the space that it will need, so that a full disk does not stop it, and syncs what
  /// was read from it.
  private func extendLog() throws(JournalFault) {
    try Files.extend(path + "-wal", to: JournalFormat.logSize)
  }

  // MARK: - Replacing

  /// Writes a new file and puts it in the old one's place.
  private func replace(with entries: [JournalEntry], _ clock: JournalClock) throws(JournalFault) {
    let building = path + ".building"
    try Files.remove(building)
    try Files.create(building)
    do throws(SQLiteError) {
      try JournalFile.build(at: building, entries: entries, clock: clock, vfs: vfs)
    } catch {
      try? Files.remove(building)  // Free what it took; the next attempt starts anew anyway.
      throw error.fault
    }
    try Files.move(building, to: path + ".new")
    try Files.syncFolder(of: path)  // From here on the new file counts.
    try finishReplacement()
  }

  /// Ends a replacement that a crash may have interrupted.
  private func finishReplacement() throws(JournalFault) {
    let replacement = path + ".new"
    try Files.remove(path + ".building")
    guard try Files.status(replacement) != nil else { return }
    // The old log first: it would be taken for the new file's.
    try Files.remove(path + "-wal")
    try Files.syncFolder(of: path)
    try Files.move(replacement, to: path)
    try Files.syncFolder(of: path)
  }

  /// Moves the file and its log to a free name and returns it.
  private func setAside() throws(JournalFault) -> String {
    var number = 1
    while try Files.status("\(path).damaged-\(number)") != nil { number += 1 }
    let name = "\(path).damaged-\(number)"
    if try Files.status(path + "-wal") != nil { try Files.move(path + "-wal", to: name + "-wal") }
    try Files.move(path, to: name)
    try Files.syncFolder(of: path)
    return name
  }
}
