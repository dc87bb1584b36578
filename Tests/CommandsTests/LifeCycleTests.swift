// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

@Suite struct LifeCycleTests {
  @Test func `only the last value of a burst leaves, and says how many it stands for`() throws {
    var bench = Bench(.level())
    for value in 1...18 {
      try bench.set("level", .number(Double(value)))
      bench.pass(10)
    }
    #expect(bench.payloads() == [])
    bench.pass(300)
    #expect(bench.payloads() == ["18"])
    let sending = bench.dequeueEvents().last
    #expect(sending?.phase == .sending)
    #expect(sending?.collapsed == 17)
  }

  @Test func `accepted, sending and sent are told in this order, and sent is the end`() throws {
    var bench = Bench(.level())
    try bench.set("level", 40)
    bench.pass(300)
    bench.send()
    let events = bench.dequeueEvents()
    #expect(events.map(\.phase) == [.accepted, .sending, .sent])
    #expect(events.map(\.isFinal) == [false, false, true])
    #expect(Set(events.map(\.number)).count == 1)
    #expect(bench.wait() == nil)
  }

  @Test func `a report within the tolerance confirms, and is the target once the key is at rest`()
    throws
  {
    var bench = Bench(.seen())
    try bench.set("level", 40)
    bench.pass(300)
    bench.send()
    #expect(bench.wait() == 5000)
    try bench.report("level", 40.4)
    #expect(
      bench.told() == [
        "level accepted 40", "level sending 40", "level sent 40", "level confirmed 40",
      ]
    )
    #expect(bench.wait() == 5000)
    #expect(try bench.target("level") == 40)
    bench.pass(5000)
    #expect(bench.wait() == nil)
    #expect(try bench.target("level") == .number(40.4))
  }

  @Test func `a report that outruns the acknowledgement confirms after sent`() throws {
    var bench = Bench(.seen())
    try bench.set("level", 40)
    bench.pass(300)
    let leaving = bench.publishes()
    try bench.report("level", 40)
    bench.finish(leaving)
    #expect(bench.told().suffix(2) == ["level sent 40", "level confirmed 40"])
    bench.pass(5000)
    #expect(bench.told() == [])
    #expect(bench.wait() == nil)
  }

  @Test func `one command per key is in flight; the newest waits and replaces the pending one`()
    throws
  {
    var bench = Bench(.level())
    var sent: [CommandPublish] = []
    for value in [10.0, 20, 30] {
      try bench.set("level", .number(value), now: true)
      sent += bench.publishes()
    }
    #expect(sent.count == 1)
    #expect(
      PendingStatus(of: try bench.key("level"), in: bench.machine)?.waits == .inFlight
    )
    #expect(PendingStatus(of: try bench.key("level"), in: bench.machine)?.collapsed == 1)
    bench.finish(sent)
    #expect(bench.payloads() == ["30"])
    #expect(bench.dequeueEvents().last?.collapsed == 1)
  }

  @Test func `a newer value may leave after sent, and the older becomes superseded`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 0)
    try bench.set("level", 10, now: true)
    bench.send()
    try bench.set("level", 20, now: true)
    _ = bench.told()
    bench.send()
    #expect(
      bench.told() == ["level superseded 10: newer value", "level sending 20", "level sent 20"]
    )
    try bench.report("level", 20)
    #expect(bench.told() == ["level confirmed 20"])
  }

  @Test func `what is not confirmed in time has failed, and the target goes back`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 5)
    try bench.set("level", 40)
    #expect(try bench.target("level") == 40)
    bench.pass(300)
    bench.send()
    bench.pass(4999)
    #expect(try bench.phase("level") == .sent)
    bench.pass(1)
    #expect(bench.told().last == "level failed 40: not confirmed within 5s")
    #expect(try bench.target("level") == 5)
    #expect(bench.wait() == nil)
  }

  @Test func `retries exclude the first attempt and carry their number`() throws {
    var bench = Bench(.seen(retries: 2))
    try bench.set("level", 40, now: true)
    var attempts: [String] = []
    for _ in 1...5 {
      attempts += bench.send()
      bench.pass(5000)
    }
    #expect(attempts == ["40", "40", "40"])
    let events = bench.dequeueEvents()
    #expect(events.filter { $0.phase == .sent }.map(\.attempt) == [1, 2, 3])
    #expect(events.last?.phase == .failed)
    #expect(events.last?.attempt == 3)
  }

  @Test func `after failed there are no retries until the device reports again`() throws {
    var bench = Bench(.seen(retries: 1))
    try bench.set("level", 40, now: true)
    for _ in 1...2 {
      bench.send()
      bench.pass(5000)
    }
    try bench.set("level", 50, now: true)
    bench.send()
    bench.pass(5000)
    #expect(bench.told().last == "level failed 50: not confirmed within 5s")
    try bench.report("level", 1)
    try bench.set("level", 60, now: true)
    bench.send()
    bench.pass(5000)
    #expect(bench.payloads() == ["60"])
  }

  @Test func `a retry never sends what something newer replaced`() throws {
    var bench = Bench(.seen(retries: 3))
    try bench.set("level", 40, now: true)
    bench.send()
    bench.pass(4900)
    try bench.set("level", 50)
    bench.pass(100)
    #expect(bench.payloads() == [])
    bench.pass(200)
    #expect(bench.payloads() == ["50"])
  }

  @Test func `a refused command fails with the broker's words`() throws {
    var bench = Bench(.seen(retries: 3))
    try bench.report("level", 1)
    try bench.set("level", 40, now: true)
    bench.finish(bench.publishes(), .refused("not authorized"))
    #expect(bench.told().last == "level failed 40: not authorized")
    #expect(try bench.target("level") == 1)
    #expect(bench.payloads() == [])
  }

  @Test func `cancel drops what waits and the target goes back`() throws {
    var bench = Bench(.seen())
    try bench.report("level", 10)
    try bench.set("level", 20)
    try bench.set("level", 30)
    #expect(bench.machine.cancel(try bench.key("level"), at: bench.now))
    #expect(bench.dequeueEvents().last?.collapsed == 1)
    #expect(try bench.target("level") == 10)
    #expect(!bench.machine.cancel(try bench.key("level"), at: bench.now))
    bench.pass(1000)
    #expect(bench.payloads() == [])
    #expect(bench.wait() == nil)
  }

  @Test func `cancel does not affect a command in flight`() throws {
    var bench = Bench(.level())
    try bench.set("level", 20, now: true)
    let leaving = bench.publishes()
    #expect(!bench.machine.cancel(try bench.key("level"), at: bench.now))
    bench.finish(leaving)
    #expect(bench.told().last == "level sent 20")
  }

  @Test func `what becomes of an older command does not show as the newest's phase`() throws {
    var bench = Bench(.seen())
    try bench.set("level", 20, now: true)
    let leaving = bench.publishes()
    try bench.set("level", 30)
    bench.finish(leaving)
    #expect(try bench.phase("level") == .accepted)
  }

  @Test func `the first value of a live key leaves at once, the last one always`() throws {
    var bench = Bench(.level { $0.policy = .live })
    try bench.set("level", 1)
    #expect(bench.send() == ["1"])
    for value in 2...9 {
      bench.pass(10)
      try bench.set("level", .number(Double(value)))
    }
    #expect(bench.send() == [])
    bench.pass(200)
    #expect(bench.send() == ["9"])
    #expect(bench.dequeueEvents().filter { $0.phase == .sent }.map(\.collapsed) == [0, 7])
  }

  @Test func `a live key keeps its distance across bursts`() throws {
    var bench = Bench(.level { $0.policy = .live })
    try bench.set("level", 1)
    #expect(bench.send() == ["1"])
    bench.pass(10)
    try bench.set("level", 2)
    bench.pass(190)
    #expect(bench.send() == ["2"])
    bench.pass(12)
    try bench.set("level", 3)
    #expect(bench.send() == [])
    bench.pass(187)
    #expect(bench.send() == [])
    bench.pass(1)
    #expect(bench.send() == ["3"])
  }

  @Test func `an urgent value and a change with now ignore the distance and restart it`() throws {
    var bench = Bench(
      .level {
        $0.policy = .live
        $0.urgent = [0]
      }
    )
    try bench.set("level", 1)
    #expect(bench.send() == ["1"])
    bench.pass(50)
    try bench.set("level", 0)
    #expect(bench.send() == ["0"])
    bench.pass(160)
    try bench.set("level", 3)
    #expect(bench.send() == [])
    bench.pass(40)
    #expect(bench.send() == ["3"])
    bench.pass(20)
    try bench.set("level", 4, now: true)
    #expect(bench.send() == ["4"])
    bench.pass(185)
    try bench.set("level", 5)
    bench.pass(14)
    #expect(bench.send() == [])
    bench.pass(1)
    #expect(bench.send() == ["5"])
  }

  @Test func `a change that nobody watches or waits for tells only what everybody sees`() throws {
    var bench = Bench(.level())
    bench.machine.log.isWatched = false
    try bench.set("level", 1)
    try bench.set("level", 2, now: true)
    bench.send()
    #expect(bench.told() == ["level sent 2"])
  }

  @Test func `a command keeps its caller, also when it is replaced`() throws {
    var bench = Bench(.level())
    bench.machine.log.isWatched = false
    let origins = (1...3).map { ChangeOrigin(id: .integer($0), replyTo: UInt64($0)) }
    for (value, origin) in zip([1.0, 2, 3], origins) {
      try bench.set("level", .number(value), origin: origin)
    }
    bench.pass(300)
    bench.send()
    let finals = bench.dequeueEvents().filter(\.isFinal)
    #expect(finals.map { $0.origin?.replyTo } == [1, 2, 3])
    #expect(finals.map(\.phase) == [.superseded, .superseded, .sent])
    #expect(finals.map(\.collapsed) == [0, 1, 2])
  }

  @Test
  func `only as many keys may wait as the limit says; a waiting key's newer value is welcome`()
    throws
  {
    var settings = CommandSettings()
    settings.pendingLimit = 2
    var bench = Bench(
      [.of("d", [.level("a"), .level("b"), .level("c")])],
      isConnected: false,
      settings: settings
    )
    try bench.set("a", 1, now: true)
    try bench.set("b", 1)
    #expect(throws: ValidationError.tooManyPending(limit: 2)) { try bench.set("c", 1) }
    try bench.set("a", 2)
    try bench.set("b", 2)
    #expect(bench.machine.log.statistics.changes == 5)
    #expect(bench.machine.log.statistics.rejected == 1)
  }

  @Test func `an answer that comes twice, or late, is ignored`() throws {
    var bench = Bench(.level())
    try bench.set("level", 1, now: true)
    let first = bench.publishes()
    bench.finish(first)
    bench.finish(first, .lost)
    try bench.set("level", 2, now: true)
    let second = bench.publishes()
    bench.finish(first, .refused("late"))
    bench.finish(second)
    #expect(bench.told().last == "level sent 2")
    #expect(bench.machine.log.statistics.acknowledged == 2)
  }
}

extension Value: ExpressibleByIntegerLiteral {
  package init(integerLiteral value: Int) { self = .number(Double(value)) }
}
