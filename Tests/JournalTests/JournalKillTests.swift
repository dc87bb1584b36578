// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Glibc
import Journal
import LastOut
import LastOutTesting
import Testing

/// A process that writes a journal until it is killed.
struct JournalKillTests {
  /// What the process last said about one key.
  private struct Facts {
    var accepted = 0
    var durable = 0
    var finished = 0
  }

  @Test func `a killed process loses no durable value and leaves none older than a newer one`()
    throws
  {
    let folder = try Folder()
    let log = folder.path + "/log"
    var random = SeededGenerator(seed: 20_261_121)
    var (durable, kept) = (0, 0)
    for round in 1...25 {
      let size = Bytes.read(log).count
      let process = try Self.start(["crash", folder.journal, log, String(round * 1_000_000)])
      // Anywhere from its first line on: the load never pauses.
      let end = size + Int.random(in: 1...20_000, using: &random)
      try Self.waitForSize(of: log, end)
      kill(process, SIGKILL)
      var status: Int32 = 0
      try #require(unsafe waitpid(process, &status, 0) == process)
      try #require(status & 0x7F == SIGKILL)
      let facts = Self.facts(log)
      #expect(facts["unexpected"] == nil)
      let rows = try Self.rows(folder.journal)
      for (key, fact) in facts {
        let row = rows[key]
        #expect(row ?? fact.durable >= fact.durable, "\(key): an older value came back")
        #expect(row ?? 0 <= fact.accepted)
        if fact.durable > fact.finished {
          #expect(row != nil, "\(key): \(fact.durable) was durable and is lost")
          kept += 1
        }
        durable += fact.durable > round * 1_000_000 ? 1 : 0
      }
    }
    #expect(durable > 100 && kept > 50)
  }

  /// The values that a start would replay, by key.
  private static func rows(_ path: String) throws -> [String: Int] {
    let session = try Session(path)
    try session.run { $0.journal.nextDeadline == nil }
    #expect(session.setAside == nil && session.journal.fault == nil)
    try session.close()
    var rows: [String: Int] = [:]
    for entry in session.replayed {
      let parts = entry.split(separator: "=")
      rows[String(parts[0])] = Int(parts[1])
    }
    return rows
  }

  private static func facts(_ log: String) -> [String: Facts] {
    var facts: [String: Facts] = [:]
    for line in String(decoding: Bytes.read(log), as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: " ")
      guard parts.count == 3, let number = Int(parts[2]) else { continue }
      let key = String(parts[1])
      switch parts[0] {
      case "a": facts[key, default: Facts()].accepted = number
      case "d": facts[key, default: Facts()].durable = number
      case "f": facts[key, default: Facts()].finished = number
      default: facts[key, default: Facts()].accepted = number
      }
    }
    return facts
  }

  private static func start(_ arguments: [String]) throws -> pid_t {
    let program = try programs() + "/JournalWorker"
    var words = unsafe ([program] + arguments).map { unsafe strdup($0) }
    unsafe words.append(nil)
    defer { for place in unsafe words.indices { unsafe free(words[place]) } }
    var process = pid_t()
    let code = unsafe posix_spawn(&process, program, nil, nil, words, environ)
    try #require(code == 0, "\(program) could not be started")
    return process
  }

  private static func waitForSize(of path: String, _ size: Int) throws {
    let deadline = Session.now().advanced(by: .seconds(20))
    var status = stat()
    while unsafe stat(path, &status) != 0 || status.st_size < size {
      try #require(Session.now() < deadline, "the process wrote nothing")
      poll(nil, 0, 1)
    }
  }

  /// The folder that has the programs: where the test bundle is too.
  private static func programs() throws -> String {
    let maps = String(decoding: Bytes.read("/proc/self/maps"), as: UTF8.self)
    let line = try #require(maps.split(separator: "\n").first { $0.hasSuffix("Tests.xctest") })
    let path = line.drop { $0 != "/" }.split(separator: "/", omittingEmptySubsequences: false)
    return path.dropLast().joined(separator: "/")
  }
}
