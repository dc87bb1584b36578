// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Glibc
import Journal
import LastOut
import LastOutTesting
import Testing

/// The power fails, again and again, at any moment: nothing that was durable is lost, and nothing
/// is called damage.
@Suite(.serialized)
struct JournalPowerCutTests {
  private let folder: Folder
  private var path: String { folder.journal }

  init() throws {
    folder = try Folder()
  }

  /// Each cut tears the last transaction, whose last frame is on the disk.
  @Test(arguments: 2...5)
  func `a chain of torn transactions loses nothing else`(cuts: Int) throws {
    var expected: [String] = []
    for cut in 1...cuts {
      var last = 0..<0
      try folder.crash { session in
        try session.decideReplay()
        #expect(session.setAside == nil)
        #expect(session.replayed == expected)
        try session.write(String(cut), for: "kept\(cut)")
        // A transaction of many frames, fewer with each cut: what is left of one lies behind the
        // next.
        let size = 30 - cut * 5
        let before = LogFrames(Bytes.read(path + "-wal"))
        let accepted = (0..<size).map { number in
          session.accept(String(repeating: "x", count: 700), for: "torn\(number)")
        }
        try session.run { $0.durableThrough >= accepted.last ?? 0 }
        last = LogFrames(Bytes.read(path + "-wal")).written(since: before)
      }
      expected.append("kept\(cut)=\(cut)")
      try #require(last.count > 3)
      let page = LogFrames.place(of: last.lowerBound) + 24
      try Bytes.write([UInt8](repeating: 0, count: 512), to: path + "-wal", at: page)
    }
    let session = try Session(path)
    try session.decideReplay()
    #expect(session.setAside == nil)
    #expect(session.replayed == expected)
    try session.close()
  }

  /// Runs a process that writes a journal, cuts its file operations short at a random point, and
  /// starts the next run with the remains.
  @Test(arguments: 1...PowerCutChain.count)
  func `a chain of power cuts loses nothing and is never called damage`(seed: Int) throws {
    var chain = try PowerCutChain(seed: seed)
    for _ in 0..<PowerCutChain.length { try chain.cut() }
    #expect(chain.operations > 20)
  }
}
