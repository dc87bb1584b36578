// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Durability
import JSON
import LastOut
import Testing
import Values

@testable import GatewayCore

@Suite struct ReportHistoryTests {
  private let power = KeyIndex(3)
  private let level = KeyIndex(0)

  private func moment(_ seconds: Double) -> Moment {
    Moment(nanoseconds: UInt64((seconds * 10).rounded()) * 100_000_000)
  }

  /// The points as they are seen after 400,000 s.
  private func points(
    _ history: ReportHistory,
    _ key: KeyIndex
  ) -> [(age: Duration, value: Value)] {
    history.points(of: key, at: moment(400_000))
  }

  private func seconds(_ history: ReportHistory, _ key: KeyIndex) -> [Double] {
    points(history, key).map { Double(4_000_000 - $0.age.wholeMilliseconds / 100) / 10 }
  }

  private func values(_ history: ReportHistory, _ key: KeyIndex) -> [Value] {
    points(history, key).map(\.value)
  }

  @Test func `only changes are points`() {
    var history = ReportHistory()
    for (at, value) in [(0.0, 21.1), (10, 21.1), (20, 22.5), (30, 22.5), (40, 21.1)] {
      history.record(.number(value), of: level, at: moment(at))
    }

    #expect(values(history, level) == [.number(21.1), .number(22.5), .number(21.1)])
    #expect(seconds(history, level) == [0, 20, 40])
    #expect(points(history, power).isEmpty)
  }

  @Test func `a report that changes nothing says that the device was heard`() {
    var history = ReportHistory()
    #expect(history.lastReport(of: level, at: moment(0)) == nil)
    for second in [0.0, 10, 25] { history.record(.number(21), of: level, at: moment(second)) }
    #expect(history.lastReport(of: level, at: moment(31)) == .seconds(6))
    #expect(points(history, level).count == 1)
    #expect(history.lastReport(of: power, at: moment(31)) == nil)
  }

  @Test func `each change of a switch is a point`() {
    var history = ReportHistory()
    for second in 0..<4 {
      history.record(.boolean(second % 2 == 0), of: power, at: moment(Double(second) / 10))
    }

    let states = values(history, power)
    #expect(states == [true, false, true, false].map { .boolean($0) })
    #expect(seconds(history, power) == [0, 0.1, 0.2, 0.3])
  }

  @Test func `the newest point follows a number that changes quickly`() {
    var history = ReportHistory()
    for tenth in 0...120 {
      history.record(.number(Double(tenth)), of: level, at: moment(Double(tenth) / 10))
    }

    // Nearly five seconds apart, and the newest.
    #expect(seconds(history, level) == [0, 4.9, 9.8, 12])
    #expect(values(history, level).last == .number(120))
  }

  @Test(arguments: [1.0, 7, 60, 1000])
  func `a number that changes forever spans a day at most, with the newest at its end`(
    pace: Double
  ) {
    var history = ReportHistory()
    var now = 0.0
    var least = Int.max
    while now < 3 * 86_400 {
      now += pace
      history.record(.number(now), of: level, at: moment(now))
      if now > 86_400 { least = min(least, points(history, level).count) }
    }

    let seconds = seconds(history, level)
    #expect(seconds.count <= ReportHistory.depth)
    #expect(least >= 40)
    #expect(seconds.last == now)
    #expect(zip(seconds, seconds.dropFirst()).allSatisfy { $0 < $1 })
    #expect(now - (seconds.first ?? 0) > 15 * 3600)
    #expect(now - (seconds.first ?? 0) < 30 * 3600)
  }

  @Test func `a switch keeps its last changes`() {
    var history = ReportHistory()
    for second in 0..<1000 {
      history.record(.boolean(second % 2 == 0), of: power, at: moment(Double(second)))
    }

    let seconds = seconds(history, power)
    #expect((72...96).contains(seconds.count))
    #expect(seconds == (1000 - seconds.count..<1000).map(Double.init))
  }

  @Test func `words and colors have no history, and later keys none where there is no room`() {
    var history = ReportHistory(limit: 2)
    history.record(.text("heat"), of: KeyIndex(9), at: moment(0))
    #expect(history.count == 0)
    for key in 0..<3 { history.record(.number(1), of: KeyIndex(Int32(key)), at: moment(1)) }

    #expect(history.count == 2)
    #expect(points(history, KeyIndex(1)).count == 1)
    #expect(points(history, KeyIndex(2)).isEmpty)
  }

  @Test func `a property of another type begins again`() {
    var history = ReportHistory()
    history.record(.number(40), of: level, at: moment(1))
    history.record(.boolean(true), of: level, at: moment(2))

    #expect(values(history, level) == [.boolean(true)])
  }

  // MARK: - A document

  private let registry = CoreBench(devices: [
    Device(
      id: "a",
      name: "a",
      properties: [
        CoreBench.number("level"),
        Property(
          id: "power",
          kind: .boolean,
          policy: Policy(delay: .zero),
          command: .init(topic: "power/set", payload: PayloadTemplate("$value"))
        ),
      ]
    )
  ]).core.registry

  private func clock(_ seconds: Double, boot: UInt64 = 1, isSynchronised: Bool = true)
    -> JournalClock
  {
    JournalClock(
      moment: moment(seconds),
      stamps: JournalStamps(
        boot: BootIdentifier(high: 7, low: boot),
        bootMilliseconds: Int64(seconds * 1000),
        wallMilliseconds: CoreBench.wallMilliseconds + Int64(boot) * 500_000_000
          + Int64(seconds * 1000)
      ),
      isSynchronised: isSynchronised
    )
  }

  /// A history of two keys that was written at 1,000 s of boot 1.
  private func document() throws -> ReportHistory.Document {
    var history = ReportHistory()
    let (level, power) = (KeyIndex(0), KeyIndex(1))
    for (at, value) in [(100.0, 21.1), (900, -3), (950, 0.5)] {
      history.record(.number(value), of: level, at: moment(at))
    }
    history.record(.boolean(true), of: power, at: moment(990))
    let bytes = history.document(of: registry, clock(1000))
    return try #require(ReportHistory.Document(try JSONParser.parse(bytes.span)))
  }

  @Test func `what an earlier process recorded goes before what was recorded since`() throws {
    let document = try document()
    let age = try #require(document.age(clock(2000)))
    #expect(age == .seconds(1000))
    var history = ReportHistory()
    history.record(.number(0.5), of: KeyIndex(0), at: moment(1990))
    history.record(.number(4), of: KeyIndex(0), at: moment(1995))
    let rest = history.restore(document, age: age, in: registry, at: moment(2000))
    #expect(rest == nil)

    #expect(values(history, KeyIndex(0)) == [.number(21.1), .number(-3), .number(0.5), .number(4)])
    #expect(seconds(history, KeyIndex(0)) == [100, 900, 950, 1995])
    #expect(values(history, KeyIndex(1)) == [.boolean(true)])
    #expect(seconds(history, KeyIndex(1)) == [990])
  }

  @Test func `after a reboot it is as old as the wall clock says, once that is synchronised`()
    throws
  {
    let document = try document()
    // 50 s after the boot, 499,050 s after it was written: older than a day.
    #expect(document.age(clock(50, boot: 2)) == .seconds(86_400))
    #expect(document.age(clock(50, boot: 2, isSynchronised: false)) == nil)
    var history = ReportHistory()
    _ = history.restore(document, age: .seconds(86_000), in: registry, at: moment(50))

    // The oldest point is older than a day by then.
    #expect(values(history, KeyIndex(0)) == [.number(-3), .number(0.5)])
    let ages = history.points(of: KeyIndex(0), at: moment(50)).map(\.age)
    #expect(ages == [.seconds(86_100), .seconds(86_050)])
  }

  @Test func `what was recorded of a key that appears later is kept, and restored then`() throws {
    var history = ReportHistory()
    let empty = CoreBench(devices: []).core.registry
    let unknown = history.restore(
      try document(),
      age: .seconds(1000),
      in: empty,
      at: moment(2000)
    )
    let text = history.document(of: empty, clock(3000), keeping: unknown)
    let kept = try #require(ReportHistory.Document(try JSONParser.parse(text.span)))
    #expect(history.count == 0)

    _ = history.restore(kept, age: .seconds(500), in: registry, at: moment(3500))
    #expect(seconds(history, KeyIndex(0)) == [100, 900, 950])
    #expect(seconds(history, KeyIndex(1)) == [990])
  }

  @Test(arguments: [
    "[]", "{}", #"{"boot":[],"boot_ms":1,"wall_ms":1,"keys":{}}"#,
    #"{"boot":["1","x"],"boot_ms":1,"wall_ms":1,"keys":{}}"#,
    #"{"boot":["1","2"],"boot_ms":"1","wall_ms":1,"keys":{}}"#,
    #"{"boot":["1","2"],"boot_ms":1,"wall_ms":1,"keys":[]}"#,
  ])
  func `what is no such document is refused`(text: String) throws {
    #expect(ReportHistory.Document(try JSONParser.parse(text)) == nil)
  }

  @Test(arguments: [
    ("a/level", "[50,100,1,20,2]", [1.0, 2]), ("a/level", "[50,100,1,200,2,20,3]", [1, 3]),
    ("a/level", "[-9,100,true,-4,2,20,3]", [3]),
    ("a/level", "[99999999999,100,1e99,7]", []),
    ("a/level", #"["50",100,1]"#, []), ("a/level", "{}", []), ("a/level", "[]", []),
    ("a/power", "[50,100,1]", []), ("b/level", "[50,100,1]", []),
  ])
  func `of a document that was edited, what can be read counts`(
    key: String,
    series: String,
    expected: [Double]
  ) throws {
    let text = #"{"boot":["1","2"],"boot_ms":1,"wall_ms":1,"keys":{"\#(key)":\#(series)}}"#
    let document = try #require(ReportHistory.Document(try JSONParser.parse(text)))
    var history = ReportHistory()
    _ = history.restore(document, age: .zero, in: registry, at: moment(50))
    history.record(.number(8), of: KeyIndex(0), at: moment(51))

    #expect(values(history, KeyIndex(0)) == expected.map { .number($0) } + [.number(8)])
  }
}
