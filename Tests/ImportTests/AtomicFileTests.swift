// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Import
import Operations
import Testing

/// Files that are written as a whole.
struct AtomicFileTests {
  private static func status(_ path: String) -> stat? {
    var status = stat()
    return unsafe lstat(path, &status) == 0 ? status : nil
  }

  @Test func `a file that is replaced keeps its mode, its owner and its group`() throws {
    let folder = try TemporaryFolder.make("settle-file")
    defer { TemporaryFolder.remove(folder) }
    let path = folder + "/settle.yaml"
    try AtomicFile.create(Array("old".utf8), at: path, mode: 0o600)
    // The mask of a process keeps others from writing what it makes.
    try #require(unsafe chmod(path, 0o664) == 0)
    // Only root may give a file away.
    let group: gid_t = geteuid() == 0 ? 12_345 : getegid()
    try #require(unsafe chown(path, geteuid(), group) == 0)

    try AtomicFile.write(Array("new".utf8), to: path, replacing: Array("old".utf8))

    let status = try #require(Self.status(path))
    #expect(TextFile.read(path) == "new")
    #expect(status.st_mode & 0o777 == 0o664)
    #expect(status.st_gid == group)
  }

  @Test(arguments: [nil, "old"])
  func `a file that was edited meanwhile stays`(read: String?) throws {
    let folder = try TemporaryFolder.make("settle-file")
    defer { TemporaryFolder.remove(folder) }
    let path = folder + "/settle.yaml"
    try TextFile.write("edited", to: path)

    let reason = "was edited meanwhile, and left as it is; run the command again"
    #expect(throws: FileError(path, reason)) {
      try AtomicFile.write(Array("new".utf8), to: path, replacing: read.map { Array($0.utf8) })
    }

    #expect(TextFile.read(path) == "edited")
    #expect(Self.status("\(folder)/.settle.yaml.\(getpid()).new") == nil)
  }

  @Test func `a file that is created never replaces another, nor what a link leads to`() throws {
    let folder = try TemporaryFolder.make("settle-file")
    defer { TemporaryFolder.remove(folder) }
    let (path, link) = (folder + "/mine", folder + "/link")
    try TextFile.write("mine", to: path)
    try #require(unsafe symlink(folder + "/nowhere", link) == 0)

    for place in [path, link] {
      #expect(throws: FileError(place, "exists")) {
        try AtomicFile.create(Array("other".utf8), at: place)
      }
    }

    #expect(TextFile.read(path) == "mine")
    #expect(Self.status(folder + "/nowhere") == nil)
    unlink(link)
  }

  private func unlink(_ path: String) { _ = unsafe Glibc.unlink(path) }
}
