// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Glibc
import Journal
import JournalDriver
import LastOut
import Testing

/// A journal used as the gateway uses it, with the loop played by the test.
final class Session {
  /// A value that the owner keeps.
  private struct Text: JournalValue {
    var text: String
    var bytes: [UInt8] { Array(text.utf8) }
  }

  let journal: DrivenJournal
  /// Everything the journal has reported so far.
  private(set) var events: [JournalEvent] = []
  /// Everything up to here was reported durable.
  private(set) var durableThrough: UInt64 = 0
  private var kept: [UInt64: Text] = [:]
  /// The newest value of each key that has not ended.
  private var newest: [String: UInt64] = [:]
  private let clock: @Sendable () -> JournalClock
  private let pipe: Pipe

  /// Commits without a pause between them, so that tests need not wait.
  init(
    _ path: String,
    vfs: String? = nil,
    clock: @escaping @Sendable () -> JournalClock = SystemClock.read
  ) throws {
    let pipe = Pipe()
    self.pipe = pipe
    self.clock = clock
    var settings = JournalPlan.Settings()
    settings.commit = .zero
    settings.removal = .zero
    settings.retry = .milliseconds(20)
    settings.longestRetry = .milliseconds(50)
    journal = try DrivenJournal(path: path, settings: settings, vfs: vfs, clock: clock) {
      pipe.ring()
    }
    journal.keptValue = { [unowned self] _, sequence in kept[sequence] ?? Text(text: "?") }
  }

  /// The time by the session's clock.
  var now: Moment { clock().moment }

  // MARK: - Changes

  /// Accepts a value, which supersedes the one before.
  @discardableResult
  func accept(_ value: String, for key: String, ttl: Duration = .seconds(60)) -> UInt64 {
    let now = now
    let sequence = journal.accept(
      journal.number(of: key),
      replacing: newest[key],
      at: now,
      expiresAt: now.advanced(by: ttl),
      isUrgent: false
    )
    kept[sequence] = Text(text: value)
    newest[key] = sequence
    return sequence
  }

  /// The newest value of a key is sent and acknowledged.
  func finish(_ key: String) {
    guard let sequence = newest.removeValue(forKey: key) else { return }
    let number = journal.number(of: key)
    journal.sending(number, sequence: sequence)
    journal.ended(number, sequence, at: now, promptly: false)
  }

  /// Accepts a value and waits until it is reported durable.
  func write(_ value: String, for key: String) throws {
    let sequence = accept(value, for: key)
    try run { $0.durableThrough >= sequence }
  }

  // MARK: - Running

  /// Serves the journal until `condition` holds, at most a minute.
  func run(until condition: (Session) -> Bool) throws {
    let deadline = now.advanced(by: .seconds(60))
    while true {
      let now = now
      journal.advance(to: now)
      for event in journal.dequeueEvents() { handle(event) }
      if condition(self) { return }
      try #require(now < deadline, "not in a minute, after \(events)")
      pipe.wait(for: now.duration(to: min(journal.nextDeadline ?? deadline, deadline)))
    }
  }

  private func handle(_ event: JournalEvent) {
    events.append(event)
    switch event {
    case .durable(let through): durableThrough = through
    case .replay(let entry, _): newest[entry.key] = entry.sequence
    case .memoryOnly, .recovered, .expired, .setAside: break
    }
  }

  /// Waits until everything that an earlier process left is decided.
  func decideReplay() throws {
    try run { $0.journal.nextDeadline == nil }
  }

  /// Closes the file and waits for that.
  func close() throws {
    try run { $0.journal.isIdle }
    journal.beginClosing()
    try run { $0.journal.isClosed }
  }

  // MARK: - Results

  /// The replayed values, as `key=value`.
  var replayed: [String] {
    events.compactMap { event in
      guard case .replay(let entry, _) = event else { return nil }
      return "\(entry.key)=\(String(decoding: entry.value, as: UTF8.self))"
    }
  }

  var setAside: SetAside? {
    for case .setAside(let found) in events { return found }
    return nil
  }
}

/// Wakes a test from another thread.
final class Pipe: Sendable {
  private let ends: (read: Int32, write: Int32)

  init() {
    var pair: [Int32] = [0, 0]
    unsafe pipe(&pair)
    for end in pair {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    ends = (pair[0], pair[1])
  }

  deinit {
    close(ends.read)
    close(ends.write)
  }

  func ring() {
    _ = unsafe write(ends.write, [1], 1)
  }

  func wait(for duration: Duration) {
    let left = duration.wholeMilliseconds + 1
    var entry = pollfd(fd: ends.read, events: Int16(POLLIN), revents: 0)
    unsafe poll(&entry, 1, Int32(clamping: max(left, 0)))
    var bytes = [UInt8](repeating: 0, count: 64)
    _ = unsafe read(ends.read, &bytes, bytes.count)
  }
}

/// A folder for one test, removed at its end.
final class Folder {
  let path: String
  private var isMounted = false

  init() throws {
    var template = Array("/tmp/settle-journal-XXXXXX".utf8CString)
    try #require(unsafe mkdtemp(&template) != nil)
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    if isMounted { unsafe umount2(path, Int32(MNT_DETACH)) }
    for name in names { unsafe unlink("\(path)/\(name)") }
    unsafe rmdir(path)
  }

  var journal: String { path + "/journal.db" }

  var names: [String] {
    guard let directory = unsafe opendir(path) else { return [] }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// Puts a small file system of its own there; only root may.
  func mount(bytes: Int) throws {
    let code = unsafe Glibc.mount("tmpfs", path, "tmpfs", 0, "size=\(bytes)")
    try #require(code == 0, "tmpfs could not be mounted")
    isMounted = true
  }

  func remount(readOnly: Bool) throws {
    let flags = UInt(MS_REMOUNT) | (readOnly ? UInt(MS_RDONLY) : 0)
    // A process that another test has just forked holds this one's descriptors until it executes.
    for _ in 0..<1000 {
      if unsafe Glibc.mount("tmpfs", path, "tmpfs", flags, nil) == 0 { return }
      try #require(errno == EBUSY)
      usleep(10_000)
    }
    Issue.record("the file system stays in use")
  }
}

extension Folder {
  /// The content of every file, by name.
  func snapshot() -> [String: [UInt8]] {
    Dictionary(uniqueKeysWithValues: names.map { ($0, Bytes.read("\(path)/\($0)")) })
  }

  /// Makes the folder hold exactly these files.
  func restore(_ files: [String: [UInt8]]) throws {
    for name in names { unsafe unlink("\(path)/\(name)") }
    for (name, bytes) in files { try Bytes.write(bytes, to: "\(path)/\(name)") }
  }

  /// Serves a journal here and leaves its files as after a kill.
  func crash(_ body: (Session) throws -> Void) throws {
    let session = try Session(journal)
    try body(session)
    let files = snapshot()
    try session.close()
    try restore(files)
  }
}

/// Reads and changes files from below.
enum Bytes {
  static func read(_ path: String) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var result: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while case let count = unsafe Glibc.read(descriptor, &chunk, chunk.count), count > 0 {
      result += chunk[..<count]
    }
    return result
  }

  /// Whether a file holds exactly these bytes: an expectation of equality would print the
  /// difference of two long arrays, which takes minutes.
  static func hold(_ bytes: [UInt8], at path: String) -> Bool { read(path) == bytes }

  static func write(_ bytes: [UInt8], to path: String, at offset: Int = 0) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    try #require(unsafe pwrite(descriptor, bytes, bytes.count, offset) == bytes.count)
  }
}
