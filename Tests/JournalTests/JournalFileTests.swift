// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import FaultySync
import Glibc
import Journal
import JournalDriver
import Testing

@Suite(.serialized)
struct JournalFileTests {
  private let folder: Folder
  private var path: String { folder.journal }

  init() throws {
    folder = try Folder()
  }

  /// A closed journal with these values.
  private func prepare(_ values: [(key: String, value: String)]) throws {
    let session = try Session(path)
    for (key, value) in values { try session.write(value, for: key) }
    try session.close()
  }

  /// Opens the journal and returns the replayed values.
  private func replayed() throws -> [String] {
    let session = try Session(path)
    try session.decideReplay()
    try session.close()
    return session.replayed
  }

  private func refusal() throws -> JournalRefusal? {
    do throws(JournalRefusal) {
      _ = try DrivenJournal(path: path) {}
      return nil
    } catch {
      return error
    }
  }

  // MARK: - Replay

  @Test func `the newest value of each key is replayed, oldest first`() throws {
    try prepare([("a/x", "1"), ("b/x", "2"), ("a/x", "3"), ("c/x", "grün\u{0}!")])
    #expect(try replayed() == ["b/x=2", "a/x=3", "c/x=grün\u{0}!"])
  }

  @Test func `a finished value is not replayed`() throws {
    let session = try Session(path)
    try session.write("1", for: "a")
    session.accept("2", for: "b")
    session.finish("b")
    session.finish("a")
    try session.close()
    #expect(try replayed() == [])
  }

  @Test func `a value is replayed at every start until it is finished`() throws {
    try prepare([("a", "1")])
    #expect(try replayed() == ["a=1"])
    let session = try Session(path)
    try session.run { $0.replayed == ["a=1"] }
    session.finish("a")
    try session.close()
    #expect(try replayed() == [])
  }

  @Test func `a value older than its time to live is dropped`() throws {
    let session = try Session(path)
    session.accept("1", for: "a", ttl: .milliseconds(1))
    try session.close()
    let next = try Session(path)
    try next.run { !$0.events.isEmpty }
    guard case .expired(let entry, .timeToLive)? = next.events.first else {
      Issue.record("the events were \(next.events)")
      return
    }
    #expect(entry.key == "a")
    try next.close()
    #expect(try replayed() == [])
  }

  @Test func `the files are for their owner alone`() throws {
    try prepare([("a", "1")])
    #expect(folder.names == ["journal.db", "journal.db-lock", "journal.db-wal"])
    for name in folder.names {
      var status = stat()
      try #require(unsafe stat("\(folder.path)/\(name)", &status) == 0)
      #expect(status.st_mode & 0o777 == 0o600, "\(name)")
    }
  }

  @Test func `the log has its space from the start and keeps it`() throws {
    try prepare([("a", "1")])
    let size = Bytes.read(path + "-wal").count
    #expect(size >= 1 << 20)
    let session = try Session(path)
    for number in 0..<1500 { try session.write(String(number), for: "a") }
    try session.close()
    #expect(Bytes.read(path + "-wal").count == size)
    #expect(try replayed() == ["a=1499"])
  }

  // MARK: - Replacement

  @Test func `a finished replacement wins over the old file and its log`() throws {
    try prepare([("a", "old")])
    let (old, log) = (Bytes.read(path), Bytes.read(path + "-wal"))
    let session = try Session(path)
    try session.run { !$0.replayed.isEmpty }
    try session.write("new", for: "a")
    try session.close()
    // The state after a crash before the new file is renamed.
    try Bytes.write(Bytes.read(path), to: path + ".new")
    unsafe unlink(path)
    try Bytes.write(old, to: path)
    try Bytes.write(log, to: path + "-wal")
    #expect(try replayed() == ["a=new"])
    #expect(folder.names == ["journal.db", "journal.db-lock", "journal.db-wal"])
  }

  @Test func `an unfinished replacement is dropped`() throws {
    try prepare([("a", "1")])
    try Bytes.write(Array("SQLite format 3".utf8), to: path + ".building")
    #expect(try replayed() == ["a=1"])
    #expect(!folder.names.contains("journal.db.building"))
  }

  // MARK: - Refusals

  @Test func `a newer format is refused and not changed`() throws {
    try prepare([("a", "1")])
    try Bytes.write([0, 0, 0, 2], to: path, at: 60)
    let before = Bytes.read(path)
    #expect(try refusal() == .newerFormat(path: path, found: 2, supported: 1))
    #expect(Bytes.hold(before, at: path))
  }

  @Test func `another program's database is refused and not changed`() throws {
    try prepare([("a", "1")])
    try Bytes.write([0, 0, 0, 0], to: path, at: 68)
    let before = Bytes.read(path)
    #expect(try refusal() == .notAJournal(path: path))
    #expect(Bytes.hold(before, at: path))
  }

  @Test(arguments: ["", "-wal", "-lock", ".new"])
  func `a symbolic link is refused`(suffix: String) throws {
    try prepare([("a", "1")])
    unsafe unlink(path + suffix)
    try #require(unsafe symlink("/etc/hostname", path + suffix) == 0)
    #expect(try refusal() == .symbolicLink(path: path + suffix))
  }

  @Test(arguments: ["", "-wal"])
  func `a file with another name is refused until that name is gone`(suffix: String) throws {
    try prepare([("a", "1")])
    let other = path + "-other"
    try #require(unsafe link(path + suffix, other) == 0)
    #expect(try refusal() == .hardLink(path: path + suffix))
    unsafe unlink(other)
    #expect(try refusal() == nil)
  }

  @Test(arguments: [0o644, 0o620, 0o601] as [UInt32])
  func `a file open to others is refused`(mode: UInt32) throws {
    try prepare([("a", "1")])
    try #require(unsafe chmod(path, mode) == 0)
    #expect(try refusal() == .openToOthers(path: path, mode: mode))
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a file away"))
  func `a file of another user is refused`() throws {
    try prepare([("a", "1")])
    try #require(unsafe chown(path, 12_345, 12_345) == 0)
    #expect(try refusal() == .foreignOwner(path: path, owner: 12_345, expected: 0))
  }

  @Test func `a folder in the file's place is refused`() throws {
    try #require(unsafe mkdir(path, 0o700) == 0)
    defer { unsafe rmdir(path) }
    #expect(try refusal() == .notARegularFile(path: path))
  }

  @Test func `a journal in use is refused`() throws {
    let session = try Session(path)
    #expect(try refusal() == .inUse(path: path))
    try session.close()
    #expect(try refusal() == nil)
  }

  @Test func `a link in the folder's path is followed`() throws {
    try prepare([("a", "1")])
    let link = folder.path + "-link"
    try #require(unsafe symlink(folder.path, link) == 0)
    defer { unsafe unlink(link) }
    let session = try Session(link + "/journal.db")
    try session.run { $0.replayed == ["a=1"] }
    try session.close()
  }
}
