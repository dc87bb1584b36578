// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Durability
import LastOut
import Operations
import TestBroker
import Testing

@testable import Engine

/// The engine with a real server.
@Suite(.blocking) struct EngineTests {
  private func member(_ beat: UInt64) -> ClusterRecord {
    .member(MemberRecord(incarnation: 7, state: .ready, beat: beat, digest: .max))
  }

  private func owner(_ member: String, _ epoch: UInt64) -> ClusterRecord {
    .owner(OwnerRecord(member: member, incarnation: 1, beat: 1, epoch: epoch))
  }

  private func frame(_ epoch: UInt64, _ key: String) -> LogFrame {
    let row = LogFrame.Row(
      key: key,
      content: .bytes(Array("{\"value\":1}".utf8)),
      age: .milliseconds(5),
      ttl: .seconds(60)
    )
    return LogFrame(kind: .changes, epoch: epoch, puts: [row], removals: ["gone/power"])
  }

  @Test func `a record is written once for each revision, and read as it was written`() throws {
    let (server, harness) = (try NATSServer(), try EngineHarness())
    let engine = try harness.ready(EngineHarness.settings(server))
    let key = RecordKey.member("gate way_1.a")
    let first = try harness.answer { engine.write(key, member(1), after: .none, $0) }
    guard case .stored(let revision) = first else {
      Issue.record("\(first)")
      return
    }
    #expect(try harness.answer { engine.write(key, member(2), after: .none, $0) } == .conflict)
    let before = Predecessor(revision: revision, count: 1)
    let second = try harness.answer { engine.write(key, member(2), after: before, $0) }
    guard case .stored(let newer) = second else {
      Issue.record("\(second)")
      return
    }
    #expect(newer > revision)
    let found = try #require(try harness.answer { engine.read(key, $0) })
    #expect(found.record == member(2))
    #expect(found.revision == newer)
    let missing = try #require(try harness.answer { engine.read(.member("nobody"), $0) })
    #expect(missing.record == nil)
    #expect(missing.revision == 0)
    engine.close()
  }

  /// Compare-and-set is what keeps a partition from having two owners.
  ///
  /// nats-server before 2.9.21 compares revisions before it stores, so that several may pass.
  @Test(arguments: [1, 3])
  func `of six that write a record at once one wins, fifty times`(replicas: Int) throws {
    let servers = try replicas == 1 ? [NATSServer()] : NATSServer.cluster(of: replicas)
    let harness = try EngineHarness()
    var settings = EngineHarness.settings(servers, replicas: replicas)
    // An answer that is given up is neither stored nor a conflict. A question that is lost while the
    // servers elect a leader is asked again only after this time.
    settings.patience = .seconds(20)
    let engines = try (0..<6).map { try harness.ready(settings, member: "m\($0)") }
    var last = Predecessor.none
    for round: UInt64 in 1...50 {
      var outcomes: [WriteOutcome] = []
      for (number, engine) in engines.enumerated() {
        engine.write(.owner(Partition(3)), owner("m\(number)", round), after: last) {
          outcomes.append($0)
        }
      }
      try #require(harness.run { outcomes.count == 6 })
      #expect(outcomes.count { $0 == .conflict } == 5, "\(outcomes)")
      for case .stored(let revision) in outcomes {
        last = Predecessor(revision: revision, count: owner("", round).count)
      }
    }
    for engine in engines { engine.close() }
  }

  @Test func `every member sees what others write, from the beginning and from then on`() throws {
    let (server, harness) = (try NATSServer(), try EngineHarness())
    let settings = EngineHarness.settings(server)
    let writer = try harness.ready(settings)
    _ = try harness.answer { writer.write(.owner(Partition(1)), owner("a", 1), after: .none, $0) }
    let watcher = try harness.engine(settings, member: "b")
    var seen: [RecordKey: ClusterRecord] = [:]
    var readings = 0
    watcher.onRecord = { key, record, _ in seen[key] = record }
    watcher.onRecordsRead = { readings += 1 }
    watcher.start()
    try #require(harness.run { readings == 1 })
    #expect(seen == [.owner(Partition(1)): owner("a", 1)])
    _ = try harness.answer { writer.write(.member("a"), member(1), after: .none, $0) }
    #expect(harness.run { seen[.member("a")] == member(1) })
    // The server is killed and comes back: reading goes on where it was.
    server.kill()
    try #require(harness.run { watcher.problem != nil })
    try server.start()
    #expect(harness.run { watcher.problem == nil && writer.problem == nil })
    let outcome = try harness.answer { writer.write(.member("b"), member(9), after: .none, $0) }
    #expect(outcome != .conflict)
    #expect(harness.run { seen[.member("b")] == member(9) })
    #expect(readings == 1)
    writer.close()
    watcher.close()
  }

  @Test func `a log is appended in turn, read in order, and shortened`() throws {
    let (server, harness) = (try NATSServer(), try EngineHarness())
    let engine = try harness.ready(EngineHarness.settings(server))
    let partition = Partition(5)
    #expect(try harness.answer { engine.readLast(partition, $0) }.isEmpty)
    var last: UInt64 = 0
    var sequences: [UInt64] = []
    for number in 0..<300 {
      let outcome = try harness.answer {
        let before = Predecessor(revision: last, count: UInt64(number))
        engine.append(frame(2, "lamp-\(number)/power"), to: partition, after: before, $0)
      }
      guard case .stored(let sequence) = outcome else {
        Issue.record("\(outcome)")
        return
      }
      last = sequence
      sequences.append(sequence)
    }
    // An owner before, which knows an earlier end, is refused.
    let late = try harness.answer {
      let before = Predecessor(revision: sequences[10], count: 11)
      engine.append(frame(1, "lamp-0/power"), to: partition, after: before, $0)
    }
    #expect(late == .conflict)
    let read = try harness.answer { engine.read(partition, from: 1, through: last, $0) }
    let frames = try #require(read.frames)
    #expect(frames.map(\.sequence) == sequences)
    #expect(frames[7].frame == frame(2, "lamp-7/power"))
    #expect(frames[299].storedAt >= frames[0].storedAt && frames[0].storedAt > 0)
    let rest = try harness.answer {
      engine.read(partition, from: sequences[200], through: last, $0)
    }
    #expect(rest.frames?.map(\.sequence) == Array(sequences[200...]))
    engine.purge(partition, before: sequences[290])
    let isShort = harness.run { [harness] in
      let left = try? harness.answer { engine.read(partition, from: 1, through: last, $0) }
      return left?.frames?.count == 10
    }
    #expect(isShort)
    engine.close()
  }

  @Test func `an entry of a later version is unreadable, unlike one without an answer`() throws {
    let (server, harness) = (try NATSServer(), try EngineHarness())
    let engine = try harness.ready(EngineHarness.settings(server))
    let partition = Partition(5)
    let later: [UInt8] = [FrameCoding.version + 1, 1, 1, 1, 0]
    _ = try harness.answer { engine.api.publish(later, to: "settle.test.log.5", after: .none, $0) }
    guard case .unreadable = try harness.answer({ engine.readLast(partition, $0) }) else {
      Issue.record("the end was read")
      return
    }
    let read = try harness.answer { engine.read(partition, from: 1, through: 1, $0) }
    guard case .unreadable = read else {
      Issue.record("the log was read")
      return
    }
    server.kill()
    guard case .unknown = try harness.answer({ engine.readLast(partition, $0) }) else {
      Issue.record("a server that was killed has answered")
      return
    }
    engine.close()
  }

  @Test func `members confirm each other's messages and hear what is told to all`() throws {
    let (server, harness) = (try NATSServer(), try EngineHarness())
    let settings = EngineHarness.settings(server)
    let asking = try harness.ready(settings, member: "a")
    let answering = try harness.ready(settings, member: "b c")
    var messages: [[UInt8]] = []
    answering.onMessage = { messages.append($0) }
    #expect(try harness.answer { asking.send([1, 2, 3], to: "b c", $0) } == .received)
    #expect(messages == [[1, 2, 3]])
    #expect(try harness.answer { asking.send([1], to: "nobody", $0) } == .notReceived)
    var heard: [[UInt8]] = []
    var own: [[UInt8]] = []
    answering.onBroadcast = { heard.append($0) }
    asking.onBroadcast = { own.append($0) }
    asking.broadcast([9])
    #expect(harness.run { heard == [[9]] })
    #expect(own.isEmpty)
    asking.close()
    answering.close()
  }
}

extension LogPart {
  fileprivate var frames: [StoredFrame]? {
    if case .frames(let frames) = self { frames } else { nil }
  }
}

extension LogEnd {
  fileprivate var isEmpty: Bool { if case .empty = self { true } else { false } }
}
