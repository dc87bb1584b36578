// Settle
// SPDX-License-Identifier: Apache-2.0

import CSQLite
import Durability
import FaultySync
import Glibc
import Journal
import JournalDriver
import Testing

/// A disk that is full, read-only or failing: degraded, never a false accept, and it recovers.
@Suite(.serialized)
struct JournalFaultTests {
  private let folder: Folder
  private var path: String { folder.journal }

  init() throws {
    folder = try Folder()
  }

  private func replayed() throws -> [String] {
    let session = try Session(path)
    try session.decideReplay()
    try session.close()
    return session.replayed
  }

  @Test(
    arguments: [
      (SQLITE_IOERR | 4 << 8, 0),  // the sync fails
      (0, SQLITE_FULL),
      (0, SQLITE_IOERR | 3 << 8),  // the write fails
    ] as [(Int32, Int32)]
  )
  func `a failed write or sync is never reported durable, and everything is written once it works`(
    sync: Int32,
    write: Int32
  ) throws {
    try #require(faulty_install() == 0)
    let session = try Session(path, vfs: "faulty")
    try session.write("1", for: "a")
    unsafe faulty_fail(path, sync, write)
    let second = session.accept("2", for: "b")
    try session.run { $0.journal.fault != nil }
    #expect(session.durableThrough < second)
    let third = session.accept("3", for: "c")
    // Every attempt fails.
    let attempts = session.events.count
    try session.run { $0.journal.fault != nil && $0.events.count >= attempts }
    #expect(session.durableThrough < second)
    unsafe faulty_fail(path, 0, 0)
    try session.run { $0.journal.fault == nil && $0.durableThrough >= third }
    #expect(session.events.contains(.recovered))
    try session.close()
    #expect(try replayed() == ["a=1", "b=2", "c=3"])
  }

  @Test(.enabled(if: geteuid() == 0, "only root can mount a file system"))
  func `a full disk at the start degrades and recovers when there is space`() throws {
    try folder.mount(bytes: 3 << 20)
    try Bytes.write([UInt8](repeating: 1, count: 2_900_000), to: folder.path + "/ballast")
    let session = try Session(path)
    try session.run { $0.journal.fault == .diskFull }
    let first = session.accept("1", for: "a")
    unsafe unlink(folder.path + "/ballast")
    try session.run { $0.journal.fault == nil && $0.durableThrough >= first }
    try session.close()
    #expect(try replayed() == ["a=1"])
  }

  @Test(.enabled(if: geteuid() == 0, "only root can mount a file system"))
  func `a disk that becomes full does not stop values of a usual size`() throws {
    try folder.mount(bytes: 4 << 20)
    let session = try Session(path)
    try session.write("1", for: "a")
    let ballast = unsafe open(folder.path + "/ballast", O_WRONLY | O_CREAT, 0o600)
    let block = [UInt8](repeating: 1, count: 4096)
    while unsafe write(ballast, block, block.count) == block.count {}
    close(ballast)
    for number in 0..<1500 { try session.write(String(number), for: "key\(number % 50)") }
    #expect(session.journal.fault == nil)
    // More than the space that the log has: degraded, until there is room.
    let huge = session.accept(String(repeating: "x", count: 2 << 20), for: "huge")
    try session.run { $0.journal.fault == .diskFull }
    #expect(session.durableThrough < huge)
    session.finish("huge")
    unsafe unlink(folder.path + "/ballast")
    try session.run { $0.journal.fault == nil }
    try session.close()
    #expect(try replayed().count == 51)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can mount a file system"))
  func `a disk that is read-only at the start gives its values when it can be written`() throws {
    try folder.mount(bytes: 8 << 20)
    let before = try Session(path)
    try before.write("old", for: "a")
    try before.write("old", for: "b")
    try before.close()
    try folder.remount(readOnly: true)
    let session = try Session(path)
    try session.run { $0.journal.fault == .readOnly }
    #expect(session.replayed == [])
    let new = session.accept("new", for: "a")
    try folder.remount(readOnly: false)
    try session.run { $0.journal.fault == nil && $0.durableThrough >= new }
    try session.run { $0.replayed == ["b=old"] }
    try session.close()
    #expect(try replayed().sorted() == ["a=new", "b=old"])
  }

  @Test func `what was set aside is reported although the disk fails after that`() throws {
    try #require(faulty_install() == 0)
    try folder.crash { try $0.write("1", for: "a") }
    for suffix in ["", "-lock"] { try #require(unsafe unlink(path + suffix) == 0) }
    unsafe faulty_fail(path, 0, SQLITE_FULL)
    let session = try Session(path, vfs: "faulty")
    try session.run { $0.journal.fault == .diskFull }
    unsafe faulty_fail(path, 0, 0)
    try session.run { $0.journal.fault == nil }
    #expect(
      session.setAside
        == SetAside(path: path + ".damaged-1-wal", reason: "the file is missing")
    )
    try session.close()
  }

  @Test func `a folder that cannot be made degrades`() throws {
    let session = try Session("/proc/nothing/journal.db")
    try session.run { $0.journal.fault != nil }
    let key = session.journal.number(of: "a")
    #expect(session.journal.refusal(of: key, at: session.now) == nil)
    session.journal.beginClosing()
    try session.run { $0.journal.isClosed }
  }
}
