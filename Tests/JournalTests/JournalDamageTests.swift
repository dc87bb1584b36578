// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Glibc
import Journal
import Testing

/// Files that were damaged, shortened or deleted while no process used them: reported, and never an
/// older value sent.
@Suite(.serialized)
struct JournalDamageTests {
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

  /// The content that a start finds, after which the journal works.
  private func found() throws -> (replayed: [String], setAside: SetAside?) {
    let session = try Session(path)
    try session.decideReplay()
    try session.write("works", for: "probe")
    session.finish("probe")
    try session.close()
    return (session.replayed, session.setAside)
  }

  // MARK: - The file

  @Test(arguments: [0, 20, 100, 980])
  func `a damaged head is set aside and writing continues`(offset: Int) throws {
    try prepare([("a", "1")])
    try Bytes.write([UInt8](repeating: 0xA5, count: 40), to: path, at: offset)
    let (replayed, setAside) = try found()
    #expect(setAside?.path == path + ".damaged-1")
    #expect(replayed == [])
    #expect(folder.names.contains("journal.db.damaged-1"))
    #expect(try found().setAside == nil)
  }

  @Test func `a changed byte in a value is found`() throws {
    try prepare([("a", "precious")])
    let bytes = Bytes.read(path)
    let text = Array("precious".utf8)
    let places = bytes.indices.filter { bytes[$0...].starts(with: text) }
    for place in places { try Bytes.write([UInt8(ascii: "P")], to: path, at: place) }
    try #require(!places.isEmpty)
    #expect(try found().setAside?.reason.contains("checksum") == true)
  }

  @Test func `a file cut short is set aside`() throws {
    try prepare((0..<200).map { ("key\($0)", "value") })
    try #require(unsafe truncate(path, 8_192) == 0)
    let (replayed, setAside) = try found()
    #expect(setAside != nil)
    #expect(replayed == [])
  }

  @Test func `a second damaged file gets another name`() throws {
    for number in 1...2 {
      try prepare([("a", "1")])
      try Bytes.write([UInt8](repeating: 0, count: 100), to: path)
      #expect(try found().setAside?.path == "\(path).damaged-\(number)")
    }
  }

  // MARK: - The log

  @Test(arguments: [20, 32 + 1048 + 500, 32 + 1048 * 8 + 30])
  func `damage in the log is found before it brings back an older value`(offset: Int) throws {
    try folder.crash { session in
      for number in 0..<20 { try session.write("value \(number)", for: "a") }
    }
    let log = Bytes.read(path + "-wal")
    try Bytes.write([log[offset] ^ 0x10], to: path + "-wal", at: offset)
    let (replayed, setAside) = try found()
    #expect(setAside?.reason.contains("log") == true)
    #expect(replayed == [])
  }

  @Test func `damage in the last transaction but one is found`() throws {
    try folder.crash { session in
      for number in 0..<5 { try session.write(String(number), for: "a") }
    }
    let log = LogFrames(Bytes.read(path + "-wal"))
    let place = LogFrames.place(of: log.ends[log.ends.count - 2]) + 500
    try Bytes.write([log.bytes[place] ^ 1], to: path + "-wal", at: place)
    let (replayed, setAside) = try found()
    #expect(setAside?.reason == "the middle of its log")
    #expect(replayed == [])
  }

  @Test func `a log torn in its last transaction is sound up to there`() throws {
    try folder.crash { session in
      for number in 0..<5 { try session.write(String(number), for: "a") }
    }
    let log = LogFrames(Bytes.read(path + "-wal"))
    let tear = LogFrames.place(of: log.ends[log.ends.count - 1]) + 512
    try Bytes.write([UInt8](repeating: 0, count: 536), to: path + "-wal", at: tear)
    let (replayed, setAside) = try found()
    #expect(replayed == ["a=3"])
    #expect(setAside == nil)
  }

  /// The file has an older value, the log the newest one.
  @Test(arguments: [0, 1, 32, 4096, 100_000, (1 << 20) - 1] as [Int?] + [nil])
  func `a log that was shortened or deleted is damage, not an older value`(size: Int?) throws {
    try prepare([("a", "old")])
    try folder.crash { try $0.write("new", for: "a") }
    if let size {
      try #require(unsafe truncate(path + "-wal", size) == 0)
    } else {
      try #require(unsafe unlink(path + "-wal") == 0)
    }
    let (replayed, setAside) = try found()
    #expect(replayed == [])
    #expect(setAside?.path == path + ".damaged-1")
    #expect(setAside?.reason.contains("its log") == true)
  }

  @Test(arguments: [32, 512, 4096, 1 << 20])
  func `a log whose start was overwritten with zeros is damage`(count: Int) throws {
    try prepare([("a", "old")])
    try folder.crash { try $0.write("new", for: "a") }
    try Bytes.write([UInt8](repeating: 0, count: count), to: path + "-wal")
    let (replayed, setAside) = try found()
    #expect(replayed == [])
    #expect(setAside?.reason == "the head of its log")
  }

  /// A longer log could lose its end unnoticed.
  @Test func `a log that a large commit made longer gets its size back`() throws {
    let session = try Session(path)
    try session.write(String(repeating: "x", count: 3 << 20), for: "a")
    session.finish("a")
    try session.write("1", for: "b")
    for _ in 0..<1000 where Bytes.read(path + "-wal").count > 1 << 20 { poll(nil, 0, 5) }
    #expect(Bytes.read(path + "-wal").count == 1 << 20)
    try session.close()
    #expect(try found().replayed == ["b=1"])
  }

  // MARK: - Missing files

  @Test(
    arguments: [
      (["journal.db"], "journal.db.damaged-1-wal"),
      (["journal.db", "journal.db-lock"], "journal.db.damaged-1-wal"),
      (["journal.db", "journal.db-wal"], nil),
    ] as [([String], String?)]
  )
  func `a journal that was deleted is reported`(names: [String], kept: String?) throws {
    try folder.crash { try $0.write("1", for: "a") }
    for name in names { try #require(unsafe unlink("\(folder.path)/\(name)") == 0) }
    let (replayed, setAside) = try found()
    #expect(replayed == [])
    #expect(
      setAside == SetAside(path: kept.map { folder.path + "/" + $0 }, reason: "the file is missing")
    )
    #expect(try found().setAside == nil)
  }

  @Test func `an emptied file is reported`() throws {
    try prepare([("a", "1")])
    try #require(unsafe truncate(path, 0) == 0)
    #expect(try found().setAside?.path == path + ".damaged-1")
  }

  @Test func `a folder without any file of a journal gets a new one without a word`() throws {
    try prepare([("a", "1")])
    try folder.restore([:])
    let (replayed, setAside) = try found()
    #expect(replayed == [] && setAside == nil)
  }

  // MARK: - Crashes

  /// Every state that a crash can leave while a file is created, replaced or set aside.
  @Test(arguments: Interruption.allCases)
  func `a crash between two steps is never called damage`(interruption: Interruption) throws {
    try prepare([("a", "old")])
    let old = folder.snapshot()
    try prepare([("a", "new")])
    let new = folder.snapshot()
    try folder.restore(interruption.files(old: old, new: new))
    let (replayed, setAside) = try found()
    #expect(setAside == nil)
    #expect(replayed == interruption.replayed)
    #expect(folder.names == ["journal.db", "journal.db-lock", "journal.db-wal"])
  }

  @Test func `a crash while a damaged journal is set aside is reported as damage`() throws {
    try prepare([("a", "1")])
    let file = Bytes.read(path)
    // The log has moved, the file has not.
    unsafe rename(path + "-wal", path + ".damaged-1-wal")
    #expect(try found().setAside?.path == path + ".damaged-1")
    #expect(Bytes.hold(file, at: path + ".damaged-1"))
    // Both have moved, and nothing is in their place.
    unsafe unlink(path)
    unsafe unlink(path + "-wal")
    #expect(try found().setAside?.reason == "the file is missing")
  }
}

/// A crash while a new file is put in place, by the last step that reached the disk.
enum Interruption: CaseIterable, CustomTestStringConvertible {
  case creationBegan
  case creationWritten
  case creationHasLog
  case replacementBegan
  case replacementWritten
  case replacementLostLog
  case replacementHasPartOfLog
  case replacementHasLog
  case replacementDone

  var testDescription: String { "\(self)" }

  var replayed: [String] {
    switch self {
    case .creationBegan: []
    case .replacementBegan: ["a=old"]
    default: ["a=new"]
    }
  }

  /// The files of the folder, from those of two closed journals.
  func files(old: [String: [UInt8]], new: [String: [UInt8]]) -> [String: [UInt8]] {
    var files = old
    let log = new["journal.db-wal"]
    switch self {
    case .creationBegan:
      files = ["journal.db-lock": [], "journal.db.building": [1, 2, 3]]
    case .creationWritten:
      files = ["journal.db-lock": []]
      files["journal.db.new"] = new["journal.db"]
    case .creationHasLog:
      files = ["journal.db-lock": []]
      files["journal.db.new"] = new["journal.db"]
      files["journal.db-wal"] = log
    case .replacementBegan: files["journal.db.building"] = [1, 2, 3]
    case .replacementWritten: files["journal.db.new"] = new["journal.db"]
    case .replacementLostLog:
      files["journal.db.new"] = new["journal.db"]
      files["journal.db-wal"] = nil
    case .replacementHasPartOfLog:
      files["journal.db.new"] = new["journal.db"]
      files["journal.db-wal"] = log.map { Array($0.prefix(70_000)) }
    case .replacementHasLog:
      files["journal.db.new"] = new["journal.db"]
      files["journal.db-wal"] = log
    case .replacementDone:
      files["journal.db"] = new["journal.db"]
      files["journal.db-wal"] = log
      files["journal.db-lock"] = []  // The mark of a first creation follows.
    }
    return files
  }
}
