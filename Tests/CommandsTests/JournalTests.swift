// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

/// What a journal beside the machine asks of it.
@Suite struct JournalTests {
  @Test func `with a journal every event is told, with all that an accepted value brings along`()
    throws
  {
    var bench = Bench(.level())
    bench.machine.log.isWatched = false
    try bench.set("level", 1)
    #expect(bench.told() == [])
    bench.machine.log.isJournalled = true
    try bench.set("level", 2, ttl: .seconds(7), options: [.init("transition", 1)])
    let events = bench.dequeueEvents()
    #expect(events.map(\.phase) == [.accepted, .superseded])
    #expect(events[0].expiresAt == bench.now.advanced(by: .seconds(7)))
    #expect(events[0].options?.map(\.name) == ["transition"])
    bench.pass(300)
    bench.send()
    #expect(bench.told() == ["level sending 2", "level sent 2"])
  }

  @Test func `a key that is withheld settles and is replaced, and leaves once released`() throws {
    var bench = Bench(.level(), .level("other"))
    let key = try bench.key("level")
    try bench.set("level", 1)
    bench.machine.withhold(key)
    bench.pass(300)
    #expect(bench.payloads() == [])
    try bench.set("level", 2, now: true)
    try bench.set("other", 3, now: true)
    #expect(bench.send() == ["3"])
    #expect(bench.hasUnsent == true)
    #expect(bench.machine.sendQueue.hasReady == false)
    bench.machine.release(key)
    #expect(bench.machine.sendQueue.hasReady == true)
    #expect(bench.send() == ["2"])
    #expect(bench.hasUnsent == false)
  }

  @Test func `a withheld key does not ride in another's message`() throws {
    func member(_ id: String) -> Property {
      .level(id) {
        $0.command = CommandEndpoint(
          topic: "set",
          payload: PayloadTemplate(.object([id: "$value"]))
        )
      }
    }
    var bench = Bench(member("a"), member("b")) { $0.merge = true }
    try bench.set("a", 1)
    try bench.set("b", 2)
    bench.machine.withhold(try bench.key("b"))
    bench.pass(300)
    #expect(bench.send() == [#"{"a":1}"#])
    bench.machine.release(try bench.key("b"))
    #expect(bench.send() == [#"{"b":2}"#])
  }

  @Test func `a resumed value leaves at once, is marked, and is not told as accepted again`() throws
  {
    var bench = Bench(.level())
    let origin = ChangeOrigin(id: "mine", source: "cli")
    let number = bench.machine.resume(
      7,
      of: try bench.key("level"),
      at: bench.now,
      expiresAt: bench.now.advanced(by: .seconds(9)),
      origin: origin,
      options: nil
    )
    #expect(try bench.target("level") == 7)
    #expect(try bench.phase("level") == .accepted)
    let publishes = bench.publishes()
    #expect(publishes.map(\.isReplayed) == [true])
    #expect(publishes.first?.expiry == .seconds(9))
    bench.finish(publishes)
    let events = bench.dequeueEvents()
    #expect(events.map(\.phase) == [.sending, .sent])
    #expect(events.allSatisfy { $0.number == number && $0.origin === origin })
    try bench.set("level", 8, now: true)
    #expect(bench.publishes().map(\.isReplayed) == [false])
  }

  @Test func `a resumed value expires with what is left of its time`() throws {
    var bench = Bench([.of("d", [.level()])], isConnected: false)
    _ = bench.machine.resume(
      7,
      of: try bench.key("level"),
      at: bench.now,
      expiresAt: bench.now.advanced(by: .seconds(2)),
      origin: nil,
      options: nil
    )
    bench.pass(2000)
    #expect(bench.told() == ["level expired 7: the broker is not connected"])
  }

  @Test func `a change takes the place of a resumed value that waits`() throws {
    var bench = Bench([.of("d", [.level()])], isConnected: false)
    _ = bench.machine.resume(
      7,
      of: try bench.key("level"),
      at: bench.now,
      expiresAt: bench.now.advanced(by: .seconds(60)),
      origin: nil,
      options: nil
    )
    try bench.set("level", 8, now: true)
    bench.connect(true)
    #expect(bench.send() == ["8"])
    #expect(bench.told().contains("level superseded 7: newer value"))
  }

  @Test func `a pending value can still be refused, and one in flight cannot`() throws {
    var bench = Bench(.level())
    try bench.set("level", 1, now: true)
    let leaving = bench.publishes()
    try bench.set("level", 2, now: true)
    try bench.set("level", 3)
    _ = bench.dequeueEvents()
    bench.machine.refuseWaiting(try bench.key("level"), reason: "no disk", at: bench.now)
    #expect(
      bench.told().sorted() == ["level rejected 2: no disk", "level rejected 3: no disk"]
    )
    #expect(try bench.target("level") == 1)
    bench.finish(leaving)
    #expect(bench.told() == ["level sent 1"])
    #expect(bench.hasUnsent == false)
  }
}
