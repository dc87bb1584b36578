// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Glibc
import Journal
import JournalDriver
import Testing

/// Something else deletes, replaces or shortens the files of a running journal.
@Suite(.serialized)
struct JournalInUseTests {
  enum Interference: CaseIterable, CustomTestStringConvertible {
    case deletesFile
    case deletesLog
    case deletesLock
    case deletesEverything
    case replacesFile
    case replacesLog
    case replacesBoth
    case shortensLog
    case shortensFile

    var testDescription: String { "\(self)" }
  }

  private let folder: Folder
  private var path: String { folder.journal }

  init() throws {
    folder = try Folder()
  }

  @Test(arguments: Interference.allCases)
  func `the next commit notices, nothing is accepted, and a rebuild recovers`(
    interference: Interference
  ) throws {
    let session = try Session(path)
    try session.write("1", for: "a")
    try interfere(interference)
    let second = session.accept("2", for: "b")
    try session.run { $0.events.contains(.recovered) && $0.durableThrough >= second }
    guard case .memoryOnly(second, .damaged(let reason), _)? = session.events.dropFirst().first
    else {
      Issue.record("the events were \(session.events)")
      return
    }
    #expect(reason.contains("while in use"))
    #expect(Array(session.events.dropFirst(2)) == [.recovered, .durable(through: second)])
    try session.write("3", for: "c")
    try session.close()
    let next = try Session(path)
    try next.decideReplay()
    #expect(next.replayed == ["a=1", "b=2", "c=3"])
    #expect(next.setAside == nil)
    try next.close()
  }

  @Test func `a file that replaced the journal is kept under another name`() throws {
    let session = try Session(path)
    try session.write("1", for: "a")
    let log = Bytes.read(path + "-wal")
    try interfere(.replacesBoth)
    let second = session.accept("2", for: "b")
    try session.run { $0.durableThrough >= second }
    #expect(Bytes.hold(log, at: path + ".damaged-1-wal"))
    #expect(folder.names.contains("journal.db.damaged-1"))
    try session.close()
  }

  @Test func `closing does not change a file that replaced the journal`() throws {
    let session = try Session(path)
    try session.write("1", for: "a")
    try interfere(.replacesBoth)
    let (file, log) = (Bytes.read(path), Bytes.read(path + "-wal"))
    try session.close()
    #expect(Bytes.hold(file, at: path))
    #expect(Bytes.hold(log, at: path + "-wal"))
  }

  @Test func `a journal that another process locked meanwhile stays degraded`() throws {
    let session = try Session(path)
    try session.write("1", for: "a")
    try interfere(.deletesEverything)
    let other = try Session(path)
    try other.write("other", for: "a")
    session.accept("2", for: "b")
    try session.run {
      $0.events.contains { event in
        guard case .memoryOnly(_, .failed(_, let reason), _) = event else { return false }
        return reason.contains("another process uses it")
      }
    }
    try other.close()
    try session.run { $0.journal.fault == nil }
    try session.close()
  }

  private func interfere(_ interference: Interference) throws {
    switch interference {
    case .deletesFile: unsafe unlink(path)
    case .deletesLog: unsafe unlink(path + "-wal")
    case .deletesLock: unsafe unlink(path + "-lock")
    case .deletesEverything: for name in folder.names { unsafe unlink("\(folder.path)/\(name)") }
    case .replacesFile: try replace([""])
    case .replacesLog: try replace(["-wal"])
    case .replacesBoth: try replace(["", "-wal"])
    case .shortensLog: try #require(unsafe truncate(path + "-wal", 100_000) == 0)
    case .shortensFile: try #require(unsafe truncate(path, 100_000) == 0)
    }
  }

  /// Puts copies in the place of files, as the restoring of a backup does.
  private func replace(_ suffixes: [String]) throws {
    for suffix in suffixes {
      try Bytes.write(Bytes.read(path + suffix), to: path + ".copy")
      try #require(unsafe rename(path + ".copy", path + suffix) == 0)
    }
  }
}
