// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import FaultySync
import Glibc
import Journal
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

  /// Makes the log worthless: else its copies of pages repair what is damaged in the file.
  private func wipeLog() throws {
    try Bytes.write([UInt8](repeating: 0, count: 4096), to: path + "-wal")
  }

  /// Opens the journal and returns what it replays.
  private func replayed() throws -> [String] {
    let session = try Session(path)
    try session.run { $0.journal.nextDeadline == nil }
    try session.close()
    return session.replayed
  }

  private func refusal() throws -> JournalRefusal? {
    do throws(JournalRefusal) {
      _ = try Journal(path: path) {}
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
    let second = session.accept("2", for: "b")
    session.journal.finished("b", through: second, at: Session.now())
    session.journal.finished("a", through: 1, at: Session.now())
    try session.close()
    #expect(try replayed() == [])
  }

  @Test func `a value is replayed at every start until it is finished`() throws {
    try prepare([("a", "1")])
    #expect(try replayed() == ["a=1"])
    let session = try Session(path)
    try session.run { $0.replayed == ["a=1"] }
    session.journal.finished("a", through: 1, at: Session.now())
    try session.close()
    #expect(try replayed() == [])
  }

  @Test func `a value older than its time to live is dropped`() throws {
    let session = try Session(path)
    session.accept("1", for: "a", ttl: .milliseconds(1))
    try session.close()
    let next = try Session(path)
    try next.run { !$0.news.isEmpty }
    guard case .expired(let entry)? = next.news.first else {
      Issue.record("the news were \(next.news)")
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
    // As a crash leaves it before the new file has its name.
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

  // MARK: - Damage

  @Test(arguments: [0, 20, 100, 980])
  func `a damaged head is set aside and writing goes on`(offset: Int) throws {
    try prepare([("a", "1")])
    try wipeLog()
    try Bytes.write([UInt8](repeating: 0xA5, count: 40), to: path, at: offset)
    let session = try Session(path)
    try session.write("2", for: "b")
    let found = try #require(session.setAside)
    #expect(found.path == path + ".damaged-1")
    #expect(session.replayed == [])
    try session.close()
    #expect(folder.names.contains("journal.db.damaged-1"))
    #expect(try replayed() == ["b=2"])
  }

  @Test func `a changed byte in a value is found`() throws {
    try prepare([("a", "precious")])
    try wipeLog()
    let bytes = Bytes.read(path)
    let text = Array("precious".utf8)
    let places = bytes.indices.filter { bytes[$0...].starts(with: text) }
    for place in places { try Bytes.write([UInt8(ascii: "P")], to: path, at: place) }
    try #require(!places.isEmpty)
    let session = try Session(path)
    try session.run { $0.setAside != nil }
    #expect(session.setAside?.reason.contains("checksum") == true)
    try session.close()
  }

  @Test func `a file cut short is set aside`() throws {
    try prepare((0..<200).map { ("key\($0)", "value") })
    try wipeLog()
    try #require(unsafe truncate(path, 8_192) == 0)
    let session = try Session(path)
    try session.run { $0.setAside != nil }
    try session.write("1", for: "a")
    try session.close()
  }

  @Test(arguments: [20, 32 + 1048 + 500, 32 + 1048 * 8 + 30])
  func `damage in the log is found before it brings back an older value`(offset: Int) throws {
    try prepare((0..<20).map { ("a", "value \($0)") })
    let log = Bytes.read(path + "-wal")
    try Bytes.write([log[offset] ^ 0x10], to: path + "-wal", at: offset)
    let session = try Session(path)
    try session.run { $0.setAside != nil }
    #expect(session.setAside?.reason.contains("log") == true)
    #expect(session.replayed == [])
    try session.close()
  }

  @Test func `a log torn in its last transaction is sound up to there`() throws {
    let session = try Session(path)
    for number in 0..<5 { try session.write(String(number), for: "a") }
    let (file, log) = (Bytes.read(path), Bytes.read(path + "-wal"))
    try session.close()
    // As a power cut leaves it: nothing copied into the file, half of the last frame written.
    var frames = 0
    while log[(32 + 1048 * frames + 8)..<(32 + 1048 * frames + 16)] == log[16..<24] { frames += 1 }
    try Bytes.write(file, to: path)
    try Bytes.write(log, to: path + "-wal")
    let tear = 32 + 1048 * (frames - 1) + 512
    try Bytes.write([UInt8](repeating: 0, count: 536), to: path + "-wal", at: tear)
    #expect(try replayed() == ["a=3"])
  }

  @Test func `a second damaged file gets another name`() throws {
    for number in 1...2 {
      try prepare([("a", "1")])
      try Bytes.write([UInt8](repeating: 0, count: 100), to: path)
      try wipeLog()
      let session = try Session(path)
      try session.run { $0.setAside != nil }
      #expect(session.setAside?.path == "\(path).damaged-\(number)")
      try session.close()
    }
  }

  // MARK: - Refusals

  @Test func `a newer format is refused and left untouched`() throws {
    try prepare([("a", "1")])
    try Bytes.write([0, 0, 0, 2], to: path, at: 60)
    let before = Bytes.read(path)
    #expect(try refusal() == .newerFormat(path: path, found: 2, supported: 1))
    #expect(Bytes.read(path) == before)
  }

  @Test func `another program's database is refused and left untouched`() throws {
    try prepare([("a", "1")])
    try Bytes.write([0, 0, 0, 0], to: path, at: 68)
    let before = Bytes.read(path)
    #expect(try refusal() == .notAJournal(path: path))
    #expect(Bytes.read(path) == before)
  }

  @Test(arguments: ["", "-wal", "-lock", ".new"])
  func `a symbolic link is refused`(suffix: String) throws {
    try prepare([("a", "1")])
    unsafe unlink(path + suffix)
    try #require(unsafe symlink("/etc/hostname", path + suffix) == 0)
    #expect(try refusal() == .symbolicLink(path: path + suffix))
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
