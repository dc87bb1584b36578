// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Glibc
import Journal
import LastOut
import Testing

/// A journal with the loop's part played by the test: it sleeps until the writer has news.
final class Session {
  let journal: Journal
  /// Everything the journal has told so far.
  private(set) var news: [JournalNews] = []
  private let pipe: Pipe

  /// Commits without a pause between them, so that tests need not wait.
  init(_ path: String, vfs: String? = nil) throws {
    let pipe = Pipe()
    self.pipe = pipe
    var settings = JournalPlan.Settings()
    settings.commit = .zero
    settings.removal = .zero
    settings.retry = .milliseconds(20)
    settings.longestRetry = .milliseconds(50)
    journal = try Journal(path: path, settings: settings, vfs: vfs) { pipe.ring() }
  }

  static func now() -> Moment {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Moment(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
  }

  @discardableResult
  func accept(_ value: String, for key: String, ttl: Duration = .seconds(60)) -> UInt64 {
    journal.accept(Array(value.utf8), for: key, ttl: ttl, at: Self.now()).sequence
  }

  /// Serves the journal until `condition` holds, at most ten seconds.
  func run(until condition: (Session) -> Bool) throws {
    let deadline = Self.now().advanced(by: .seconds(10))
    while true {
      let now = Self.now()
      journal.advance(to: now)
      news += journal.takeNews()
      if condition(self) { return }
      try #require(now < deadline, "nothing came in ten seconds after \(news.count) news")
      pipe.wait(until: min(journal.nextDeadline ?? deadline, deadline))
    }
  }

  /// Accepts a value and waits until it is reported durable.
  func write(_ value: String, for key: String) throws {
    let sequence = accept(value, for: key)
    try run { $0.journal.durableThrough >= sequence }
  }

  /// Closes the file and waits for that.
  func close() throws {
    try run { $0.journal.isIdle }
    journal.beginClosing()
    try run { $0.journal.isClosed }
  }

  /// What was replayed, as `key=value`.
  var replayed: [String] {
    news.compactMap { news in
      guard case .replay(let entry, _) = news else { return nil }
      return "\(entry.key)=\(String(decoding: entry.value, as: UTF8.self))"
    }
  }

  var setAside: SetAside? {
    for case .setAside(let found) in news { return found }
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

  func wait(until deadline: Moment) {
    let left = Session.now().duration(to: deadline).wholeNanoseconds / 1_000_000 + 1
    var entry = pollfd(fd: ends.read, events: Int16(POLLIN), revents: 0)
    unsafe poll(&entry, 1, Int32(clamping: max(left, 0)))
    var bytes = [UInt8](repeating: 0, count: 64)
    _ = unsafe read(ends.read, &bytes, bytes.count)
  }
}

/// A folder for one test, gone with it.
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
    try #require(unsafe Glibc.mount("tmpfs", path, "tmpfs", flags, nil) == 0)
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

  static func write(_ bytes: [UInt8], to path: String, at offset: Int = 0) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    try #require(unsafe pwrite(descriptor, bytes, bytes.count, offset) == bytes.count)
  }
}
