// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Durability
internal import Glibc
import Operations

/// The journal's files: opens, checks, replaces and writes them; used by one thread at a time.
///
/// Beside `PATH` are `PATH-wal` (SQLite's log, see ``LogFile``), `PATH-lock` (see ``FileLock``),
/// for moments `PATH.building` and `PATH.new`, and after damage `PATH.damaged-N`.
///
/// A new file replaces `PATH` in steps, each durable before the next, so that a crash leaves a
/// state that the next start recognises:
///
/// 1. `PATH.building` is written. It is worthless: a start removes it.
/// 2. It becomes `PATH.new`, complete. From here on it counts: a start continues with step 3.
/// 3. An empty `PATH-wal` replaces the old log, which SQLite would use for the new file.
/// 4. `PATH.new` becomes `PATH`.
///
/// Hence `PATH` never lacks a log of full size unless something else removed it, which is damage,
/// as is a missing `PATH` after one was created.
struct JournalStore: ~Copyable, Sendable {
  /// The files in use, to detect when another program deletes, replaces or shortens them.
  private struct Identity {
    var file: Files.Status
    var log: Files.Status
  }

  /// As it was configured.
  private let configuredPath: String
  private let vfs: String?
  private var path: String
  private var lock: FileLock?
  private var file: JournalFile?
  private var identity: Identity?
  /// What failed after the last write had succeeded; thrown by the next.
  private var laterFault: JournalFault?
  /// What an attempt to open has set aside, until an attempt that succeeds reports it.
  private var unreported: SetAside?

  private var logPath: String { path + "-wal" }

  init(path: String, vfs: String? = nil) {
    configuredPath = path
    self.vfs = vfs
    self.path = path
  }

  // MARK: - Opening and closing

  /// Opens the file, or creates it; a damaged one is set aside first.
  mutating func open(clock: JournalClock) throws(JournalProblem) -> JournalContents {
    file = nil
    identity = nil
    let refusal: JournalRefusal?
    do throws(JournalFault) {
      path = try Files.resolved(configuredPath)
      refusal = try findRefusal()
    } catch {
      throw .fault(error)
    }
    if let refusal { throw .refused(refusal) }
    if lock == nil { lock = try FileLock(of: path) }
    do throws(JournalFault) {
      try finishReplacement()
      let entries = try openOrReplace(clock)
      try lock?.markCreated()
      defer { unreported = nil }
      return JournalContents(entries: entries, setAside: unreported)
    } catch {
      throw .fault(error)
    }
  }

  /// Closes the file and releases the lock.
  mutating func close() {
    if let opened = file.take() {
      try? copyLog(of: opened)  // The next start would do the same.
    }
    lock = nil
  }

  // MARK: - Writing

  /// Writes a batch; when this returns it is on the disk, in the files that a start would read.
  mutating func write(_ batch: JournalBatch, clock: JournalClock) throws(JournalFault) {
    guard file != nil else {
      throw laterFault ?? .failed(call: "write", reason: "the journal is not open")
    }
    do throws(JournalFault) {
      try checkIdentity()
      try file?.write(batch, clock: clock)
      try checkIdentity()
    } catch {
      file = nil  // Closing writes nothing.
      throw error
    }
  }

  /// Copies the log into the file when it has grown enough; everything is durable before, too.
  ///
  /// The next write throws what fails here.
  mutating func tidy() {
    guard let opened = file.take() else { return }
    guard opened.isCheckpointDue else {
      file = consume opened
      return
    }
    do throws(JournalFault) {
      try checkpoint(opened)
    } catch {
      laterFault = error
    }
  }

  /// Copies the log into the file; a log that a large commit made longer gets its usual size again.
  private mutating func checkpoint(_ opened: consuming JournalFile) throws(JournalFault) {
    guard let size = try Files.status(logPath)?.size, size > JournalFormat.logSize else {
      try opened.checkpoint()
      file = consume opened
      return
    }
    try copyLog(of: opened)
    try openFile()
  }

  /// Puts a new file with exactly `entries` in place of the old one and opens it.
  mutating func rebuild(
    _ entries: [JournalEntry],
    clock: JournalClock
  ) throws(JournalFault) {
    file = nil  // Closing writes nothing.
    laterFault = nil
    try relock()
    try keepForeignFile()
    try replace(with: entries, clock)
    try openFile()
    try lock?.markCreated()
  }

  // MARK: - Checks before opening

  /// Why the files must not be trusted, or written to; a file of a newer version or another program
  /// is not opened for that.
  private func findRefusal() throws(JournalFault) -> JournalRefusal? {
    for suffix in ["", "-wal", "-lock", ".building", ".building-journal", ".new"] {
      if let refusal = try refusal(of: path + suffix) { return refusal }
    }
    guard try Files.status(path) != nil else { return nil }
    switch JournalFormat.judge(try Files.head(of: path, count: 100)) {
    case .ours, .damaged: return nil
    case .foreign: return .notAJournal(path: path)
    case .newer(let found):
      return .newerFormat(path: path, found: found, supported: JournalFormat.version)
    }
  }

  private func refusal(of path: String) throws(JournalFault) -> JournalRefusal? {
    guard let status = try Files.status(path) else { return nil }
    if status.isLink { return .symbolicLink(path: path) }
    guard status.isRegular else { return .notARegularFile(path: path) }
    // Under its other name a second process would find neither the lock nor the log of the first.
    guard status.links <= 1 else { return .hardLink(path: path) }
    switch FileTrust(owner: status.owner, mode: status.mode).flaw(for: FileTrust.user) {
    case .foreignOwner(let owner, let expected):
      return .foreignOwner(path: path, owner: owner, expected: expected)
    case .openToOthers(let mode): return .openToOthers(path: path, mode: mode)
    case nil: return nil
    }
  }

  // MARK: - Opening

  private mutating func openOrReplace(_ clock: JournalClock) throws(JournalFault) -> [JournalEntry]
  {
    if let damage = try findDamage() {
      try setAside(because: damage)
    } else if try hasContent() {
      do throws(JournalFault) {
        return try openExisting()
      } catch {
        guard case .damaged(let damage) = error else { throw error }
        try setAside(because: damage)
      }
    }
    try replace(with: [], clock)
    try openFile()
    return []
  }

  private func hasContent() throws(JournalFault) -> Bool { try Files.status(path)?.size ?? 0 > 0 }

  /// What is wrong with the files, as far as it shows without SQLite; `nil` also when there are
  /// none and never were.
  private func findDamage() throws(JournalFault) -> String? {
    guard try hasContent() else {
      let isMarked = try lock?.isMarked() == true
      let hasLog = try Files.status(logPath) != nil
      return isMarked || hasLog ? "the file is missing" : nil
    }
    guard JournalFormat.judge(try Files.head(of: path, count: 100)) == .ours else {
      return "its head"
    }
    return try LogFile.damage(of: logPath)
  }

  /// Reads the content of the files and starts an empty log.
  ///
  /// A log that was used again after a power cut would have the rest of the torn transaction behind
  /// the new frames; after another power cut nothing could tell that rest from damage. Copying the
  /// log also syncs what was read from it: a killed process may have left it unsynced.
  private mutating func openExisting() throws(JournalFault) -> [JournalEntry] {
    let opened = try JournalFile(path, vfs: vfs)
    let entries = try opened.entries()
    if try LogFile.isEmpty(logPath) {
      file = consume opened
      try rememberIdentity()
    } else {
      try copyLog(of: opened)
      try openFile()
    }
    return entries
  }

  private mutating func openFile() throws(JournalFault) {
    file = try JournalFile(path, vfs: vfs)
    try rememberIdentity()
  }

  /// Copies the log into the file, closes both and empties the log.
  private func copyLog(of opened: consuming JournalFile) throws(JournalFault) {
    var opened = opened
    try checkIdentity()
    try opened.checkpoint()
    _ = consume opened
    try LogFile.clear(logPath)
  }

  // MARK: - Files changed by another program

  private mutating func rememberIdentity() throws(JournalFault) {
    guard let file = try Files.status(path), let log = try Files.status(logPath) else {
      throw .damaged("it was deleted while in use")
    }
    identity = Identity(file: file, log: log)
  }

  /// Checks that a start would find the files in use, in full length.
  private func checkIdentity() throws(JournalFault) {
    guard let identity else { return }
    for (path, known) in [(path, identity.file), (logPath, identity.log)] {
      guard let found = try Files.status(path) else {
        throw .damaged("\(path) was deleted while in use")
      }
      guard found.isSameFile(as: known) else { throw .damaged("\(path) was replaced while in use") }
      guard found.size >= known.size else { throw .damaged("\(path) was shortened while in use") }
    }
    guard try lock?.isLost() == false else {
      throw .damaged("\(path)-lock was deleted while in use")
    }
  }

  /// Locks the journal again if the lock's file is not there any more.
  private mutating func relock() throws(JournalFault) {
    guard try lock?.isLost() != false else { return }
    lock = nil
    do throws(JournalProblem) {
      lock = try FileLock(of: path)
    } catch {
      throw error.asFault(of: "flock")
    }
  }

  /// Sets aside a file that another program has put in place of the file in use.
  private mutating func keepForeignFile() throws(JournalFault) {
    guard let known = identity?.file else { return }
    identity = nil
    guard let found = try Files.status(path), !found.isSameFile(as: known) else { return }
    _ = try moveAside(because: "it was replaced while in use")
  }

  // MARK: - Replacing

  /// Writes a new file and puts it in the old one's place.
  private func replace(with entries: [JournalEntry], _ clock: JournalClock) throws(JournalFault) {
    let building = path + ".building"
    try Files.remove(building)
    try Files.create(building)
    do throws(JournalFault) {
      try JournalFile.build(at: building, entries: entries, clock: clock, vfs: vfs)
    } catch {
      try? Files.remove(building)  // Frees its space; the next attempt starts again anyway.
      throw error
    }
    try Files.move(building, to: path + ".new")
    try Files.syncFolder(of: path)
    try finishReplacement()
  }

  /// Completes a replacement that a crash may have interrupted.
  private func finishReplacement() throws(JournalFault) {
    let replacement = path + ".new"
    try Files.remove(path + ".building")
    guard try Files.status(replacement) != nil else { return }
    try LogFile.create(logPath)
    try Files.syncFolder(of: path)
    try Files.move(replacement, to: path)
    try Files.syncFolder(of: path)
  }

  /// Moves damaged files away, to be reported once a file is open.
  private mutating func setAside(because reason: String) throws(JournalFault) {
    let moved = try moveAside(because: reason)
    unreported = unreported ?? moved
  }

  /// Moves the file and its log, as far as they exist, to a free name.
  ///
  /// The log first: a crash in between leaves a file without a log, which is set aside under the
  /// same name.
  private func moveAside(because reason: String) throws(JournalFault) -> SetAside {
    let hasFile = try Files.status(path) != nil
    let hasLog = try Files.status(logPath) != nil
    var number = 1
    while try !isFree("\(path).damaged-\(number)", forLog: hasLog) { number += 1 }
    let name = "\(path).damaged-\(number)"
    if hasLog { try Files.move(logPath, to: name + "-wal") }
    if hasFile { try Files.move(path, to: name) }
    try Files.syncFolder(of: path)
    let kept: String? = if hasFile { name } else if hasLog { name + "-wal" } else { nil }
    return SetAside(path: kept, reason: reason)
  }

  private func isFree(_ name: String, forLog hasLog: Bool) throws(JournalFault) -> Bool {
    guard try Files.status(name) == nil else { return false }
    guard hasLog else { return true }
    return try Files.status(name + "-wal") == nil
  }
}

/// Locks a journal for this process, until it is released or the process ends.
///
/// The lock's file, `PATH-lock`, also remembers that a journal was created beside it: without that
/// a journal whose files were deleted would look like one that never existed.
struct FileLock: ~Copyable, Sendable {
  private static let mark = Array("A journal was created here.\n".utf8)

  private let name: String
  private let descriptor: Int32

  /// - Throws: ``JournalRefusal/inUse(path:)`` while another process holds it.
  init(of path: String) throws(JournalProblem) {
    name = path + "-lock"
    descriptor = unsafe open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      if errno == ELOOP { throw .refused(.symbolicLink(path: name)) }
      throw .fault(Files.failure("open \(name)"))
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      close(descriptor)
      if code == EWOULDBLOCK { throw .refused(.inUse(path: path)) }
      throw .fault(Files.failure("flock \(name)", code))
    }
  }

  deinit {
    // Closing alone would leave the lock to a child process that has not reached its exec.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Whether the file was deleted or replaced, so that another process could lock the journal too.
  func isLost() throws(JournalFault) -> Bool {
    guard let found = try Files.status(name) else { return true }
    return try !found.isSameFile(as: Files.status(of: descriptor, name))
  }

  /// Whether a journal was created here.
  func isMarked() throws(JournalFault) -> Bool {
    try Files.status(of: descriptor, name).size > 0
  }

  /// Remembers that a journal was created here; call it once its files are durable.
  func markCreated() throws(JournalFault) {
    guard try !isMarked() else { return }
    try Files.write(Self.mark, to: descriptor, name)
    guard fsync(descriptor) == 0 else { throw Files.failure("fsync \(name)") }
  }
}
