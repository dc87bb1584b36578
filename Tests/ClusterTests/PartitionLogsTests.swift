// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Durability
import LastOut
import Testing

/// What a member writes to the log of a partition, with an engine that answers when it is told to.
@Suite struct PartitionLogsTests {
  private struct Engine {
    var logs: PartitionLogs
    var stored: [StoredFrame] = []
    /// The append that has not been answered.
    var held: LogFrame?
    var holdsSnapshots = false
    private(set) var finished = 0
    private(set) var shortened = 0
    /// How many of the next reads of the end show an older one.
    var olderEnds = 0

    /// What a new owner would find.
    var contents: [String: UInt8] {
      var contents = LogContents()
      for frame in stored { contents.append(frame) }
      return contents.rows.compactMapValues(\.row.content.bytes.first)
    }

    static let clock = JournalClock(
      moment: Moment(nanoseconds: 1_000_000_000),
      stamps: JournalStamps(
        boot: BootIdentifier(high: 1, low: 1),
        bootMilliseconds: 1000,
        wallMilliseconds: 1_800_000_000_000
      )
    )

    init() {
      var settings = LogSettings()
      settings.longAfter = 1
      logs = PartitionLogs(member: "a", settings: settings) { _ in Partition(0) }
      logs.open(Partition(0), epoch: 1)
      run()
      logs.adopted(Partition(0), epoch: 1)
    }

    mutating func store(_ frame: LogFrame) {
      let sequence = UInt64(stored.count) + 1
      stored.append(StoredFrame(sequence: sequence, storedAt: 0, frame: frame))
      logs.appended(
        Partition(0),
        epoch: 1,
        .stored(revision: sequence),
        clock: Self.clock
      )
    }

    mutating func submit(_ work: JournalWork) {
      logs.submit(work, clock: Self.clock)
      run()
    }

    /// Answers until nothing is asked any more.
    mutating func run() {
      while true {
        let effects = logs.dequeueEffects()
        if effects.isEmpty { return }
        for effect in effects { perform(effect) }
      }
    }

    private mutating func perform(_ effect: LogEffect) {
      switch effect {
      case .append(_, let frame, let predecessor):
        guard predecessor.revision == stored.last?.sequence ?? 0 else {
          return logs.appended(Partition(0), epoch: 1, .conflict, clock: Self.clock)
        }
        if holdsSnapshots, case .snapshot = frame.kind, held == nil {
          held = frame
        } else {
          store(frame)
        }
      case .readLast(let partition, let epoch):
        let frames = olderEnds > 0 ? stored.dropLast() : stored[...]
        olderEnds -= 1
        let end = frames.last.map { LogEnd.frame($0) } ?? .empty
        logs.readLast(partition, epoch: epoch, end, clock: Self.clock)
      case .read(let partition, let epoch, let first, let last):
        let frames = stored.filter { (first...last).contains($0.sequence) }
        logs.read(partition, epoch: epoch, .frames(frames), clock: Self.clock)
      case .finished: finished += 1
      case .shortened: shortened += 1
      case .purge, .opened, .lost, .unreadable: break
      }
    }
  }

  private static func entry(_ key: String, _ value: UInt8) -> JournalEntry {
    JournalEntry(
      key: key,
      sequence: UInt64(value),
      value: [value],
      origin: .accepted(at: Engine.clock.moment),
      ttl: .seconds(60)
    )
  }

  @Test func `a log that cannot be read is not asked for again`() throws {
    var logs = PartitionLogs(member: "a") { _ in Partition(0) }
    for isEnd in [true, false] {
      logs.open(Partition(0), epoch: 1)
      let end = StoredFrame(
        sequence: 3,
        storedAt: 0,
        frame: LogFrame(kind: .claim(member: "a"), epoch: 1)
      )
      logs.readLast(
        Partition(0),
        epoch: 1,
        isEnd ? .unreadable : .frame(end),
        clock: Engine.clock
      )
      if !isEnd { logs.read(Partition(0), epoch: 1, .unreadable, clock: Engine.clock) }
      guard case .unreadable(Partition(0), epoch: 1)? = logs.dequeueEffects().last else {
        Issue.record("not told")
        return
      }
      #expect(logs.nextDeadline == nil)
    }
  }

  @Test func `an open log whose end cannot be read belongs to another member`() throws {
    var engine = Engine()
    engine.holdsSnapshots = true
    var batch = JournalBatch()
    batch.puts = [Self.entry("key", 1)]
    engine.logs.submit(.commit(batch), clock: Engine.clock)
    _ = engine.logs.dequeueEffects()
    engine.logs.appended(Partition(0), epoch: 1, .conflict, clock: Engine.clock)
    engine.logs.readLast(Partition(0), epoch: 1, .unreadable, clock: Engine.clock)
    let told = engine.logs.dequeueEffects().contains { if case .lost = $0 { true } else { false } }
    #expect(told)
  }

  @Test(arguments: 0..<12)
  func `what the engine has lost of a log its owner writes again`(left: Int) throws {
    var engine = Engine()
    for value in 1...9 {
      var batch = JournalBatch()
      batch.puts = [Self.entry("key \(value)", UInt8(value))]
      if value == 7 { batch.removals = ["key 2"] }
      engine.submit(.commit(batch))
    }
    let numbers = engine.stored.map(\.frame.number)
    guard left < engine.stored.count else { return }

    engine.stored.removeLast(engine.stored.count - left)
    var batch = JournalBatch()
    batch.puts = [Self.entry("key 10", 10)]
    batch.removals = ["key 3"]
    engine.submit(.commit(batch))

    var held: [String: UInt8] = [:]
    for value in [1, 4, 5, 6, 7, 8, 9, 10] { held["key \(value)"] = UInt8(value) }
    #expect(engine.contents == held)
    #expect(engine.shortened == 1)
    #expect(engine.finished == 10)
    // No number is given twice: the engine knows those of the lost frames.
    let again = engine.stored.dropFirst(left).map(\.frame.number)
    #expect(again.allSatisfy { !numbers.contains($0) })
  }

  @Test func `a log has its values in the order in which they were accepted`() throws {
    var engine = Engine()
    var batch = JournalBatch()
    // Keys come in the order in which they were changed first.
    batch.puts = [("level", 3), ("stop", 2), ("tone", 1)].map { name, sequence in
      var entry = Self.entry(name, UInt8(sequence))
      entry.sequence = UInt64(sequence)
      return entry
    }
    engine.submit(.commit(batch))
    let keys = ["tone", "stop", "level"]
    #expect(engine.stored.last?.frame.puts.map(\.key) == keys)
    // A snapshot follows.
    for value: UInt8 in 4...12 {
      engine.submit(.commit(JournalBatch(puts: [Self.entry("other", value)])))
    }
    let snapshot = engine.stored.first { $0.frame.kind == .snapshot(part: 0, count: 1) }
    #expect(snapshot?.frame.puts.map(\.key) == keys + ["other"])
  }

  @Test func `an older end of the log is none that is lost`() throws {
    var engine = Engine()
    for value in 1...3 {
      var batch = JournalBatch()
      batch.puts = [Self.entry("key \(value)", UInt8(value))]
      engine.submit(.commit(batch))
    }
    let frames = engine.stored.count

    engine.olderEnds = 1
    var batch = JournalBatch()
    batch.puts = [Self.entry("key 4", 4)]
    engine.logs.submit(.commit(batch), clock: Engine.clock)
    _ = engine.logs.dequeueEffects()
    engine.logs.appended(Partition(0), epoch: 1, .conflict, clock: Engine.clock)
    engine.run()

    #expect(engine.shortened == 0)
    #expect(engine.stored.dropFirst(frames).first?.frame.kind == .changes)
    #expect(engine.contents == ["key 1": 1, "key 2": 2, "key 3": 3, "key 4": 4])
    #expect(engine.finished == 4)
  }

  @Test func `a rebuild does not take the answer to an older append for its own`() throws {
    var engine = Engine()
    engine.holdsSnapshots = true
    for value in 1...8 where engine.held == nil {
      var batch = JournalBatch()
      batch.puts = [Self.entry("key", UInt8(value))]
      engine.submit(.commit(batch))
    }
    let held = try #require(engine.held)
    let before = engine.finished

    engine.submit(.rebuild([Self.entry("key", 9)]))
    #expect(engine.finished == before)
    engine.store(held)
    engine.run()
    #expect(engine.finished == before + 1)
    let rows = engine.stored.last?.frame.puts.map(\.content.bytes)
    #expect(rows == [[9]])
  }
}
