// Settle
// SPDX-License-Identifier: Apache-2.0

import Journal
import JournalDriver
import LastOutTesting
import Testing

/// A process that writes a journal until it is killed.
struct JournalKillTests {
  @Test func `a killed process loses no durable value and never keeps an older one than durable`()
    throws
  {
    let folder = try Folder()
    let log = folder.path + "/log"
    var random = SeededGenerator(seed: 20_261_121)
    var facts = JournalFacts()
    for round in 1...25 {
      let size = Bytes.read(log).count
      let worker = try WorkerProcess(["crash", folder.journal, log, String(round * 1_000_000)])
      // Anywhere from its first line on: the load never pauses.
      try worker.kill(afterBytes: size + Int.random(in: 1...20_000, using: &random), of: log)
      let added = String(decoding: Bytes.read(log).dropFirst(size), as: UTF8.self)
      for line in added.split(separator: "\n") { facts.add(line) }
      let session = try Session(folder.journal)
      try session.decideReplay()
      #expect(session.setAside == nil && session.journal.fault == nil)
      try session.close()
      facts.check(session.replayed, "round \(round)")
    }
    #expect(facts.durable > 100 && facts.kept > 50)
  }
}
