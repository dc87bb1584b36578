// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Journal
import JournalDriver
import LastOutTesting
import Testing

/// A chain of power cuts for one journal.
struct PowerCutChain {
  /// How many chains a test runs, and how many cuts each has: `JOURNAL_CHAINS=300` for a long run.
  static let count =
    unsafe getenv("JOURNAL_CHAINS").flatMap { unsafe Int(String(cString: $0)) } ?? 6
  static let length = 4

  private let live: Folder
  private let check: Folder
  private let records: Folder
  private let seed: Int
  private var random: SeededGenerator
  private var facts = JournalFacts()
  private var lives = 0
  /// Operations on files that were replayed.
  private(set) var operations = 0

  init(seed: Int) throws {
    self.seed = seed
    random = SeededGenerator(seed: UInt64(seed))
    live = try Folder()
    check = try Folder()
    records = try Folder()
  }

  /// Lets a process write for a moment, cuts the power at a random point before its end, and checks
  /// what a start finds then.
  mutating func cut() throws {
    lives += 1
    let record = "\(records.path)/\(lives)"
    var disk = RecordedDisk(folder: live.path, files: live.files)
    let log = record + ".facts"
    let worker = try WorkerProcess(
      ["crash", live.journal, log, String(lives * 1_000_000)],
      recording: live.path,
      to: record
    )
    try worker.kill(afterBytes: Int.random(in: 500...8000, using: &random), of: log)
    let done = RecordedOperation.parse(Bytes.read(record))
    // Every other cut hits the start, where the files are created, copied and emptied.
    let isEarly = (lives + seed).isMultiple(of: 2)
    let range = isEarly ? 0...min(done.count, 60) : (done.count / 4)...done.count
    let end = Int.random(in: range, using: &random)
    for operation in done.prefix(end) {
      if case .fact(let line) = operation { facts.add(line) } else { operations += 1 }
      disk.apply(operation)
    }
    let left = disk.cut(using: &random)
    try live.restore(names(left))
    try check.restore(names(left))
    try inspect("life \(lives), \(end) of \(done.count) operations")
  }

  private mutating func inspect(_ place: String) throws {
    let session = try Session(check.journal)
    try session.decideReplay()
    #expect(session.setAside == nil, "\(place)")
    #expect(session.journal.fault == nil, "\(place)")
    try session.close()
    facts.check(session.replayed, place)
  }

  /// The names alone, without the folder.
  private func names(_ files: [String: [UInt8]]) -> [String: [UInt8]] {
    Dictionary(
      uniqueKeysWithValues: files.map {
        (String($0.key.dropFirst(live.path.utf8.count + 1)), $0.value)
      }
    )
  }
}

extension Folder {
  /// The content of every file, by path.
  fileprivate var files: [String: [UInt8]] {
    Dictionary(uniqueKeysWithValues: snapshot().map { ("\(path)/\($0.key)", $0.value) })
  }
}
