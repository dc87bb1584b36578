// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import Durability
package import JSON
package import LastOut
package import Values

/// What devices reported of each key over the last hours: numbers, and on or off.
///
/// A key gets room for ``depth`` points, 768 bytes, with its first report, and at most ``limit``
/// keys get any: 3.3 MB. A report that changes nothing only says that the device was heard.
package struct ReportHistory: Sendable {
  /// A value that a device reported; it holds until the next point.
  fileprivate struct Point {
    /// In tenths of a second since a ``day`` before the clock's start: an earlier process may have
    /// recorded it.
    var tenths: UInt32
    var number: Float
  }

  /// The most points of one key.
  package static let depth = 96
  /// The least and the greatest distance of points of a number, in tenths of a second.
  ///
  /// 96 points that are 15 minutes apart span ``day``.
  fileprivate static let spacings: ClosedRange<UInt32> = 50...9000
  /// In tenths of a second.
  fileprivate static let day: UInt32 = 864_000

  /// The points of one key, the oldest first.
  fileprivate struct Series {
    var points: [Point] = []
    let isSwitch: Bool
    var spacing = ReportHistory.spacings.lowerBound
    /// When this process heard the device last, in the unit of points.
    var heard: UInt32?

    init(isSwitch: Bool) {
      self.isSwitch = isSwitch
      points.reserveCapacity(ReportHistory.depth)
    }

    mutating func record(_ number: Float, at tenths: UInt32) {
      heard = tenths
      guard let newest = points.last else {
        return points.append(Point(tenths: tenths, number: number))
      }
      if newest.number == number { return }
      let point = Point(tenths: tenths, number: number)
      // While a number changes quickly, the newest point follows it, and the one before is fixed.
      // Each change of a switch is a point.
      if !isSwitch, points.count > 1, tenths &- points[points.count - 2].tenths < spacing {
        points[points.count - 1] = point
        return
      }
      if points.count == ReportHistory.depth { thin(at: tenths) }
      points.append(point)
    }

    /// Makes room: every second point goes, or a quarter once they span a day.
    private mutating func thin(at tenths: UInt32) {
      let span = tenths &- points[0].tenths
      guard !isSwitch, spacing < ReportHistory.spacings.upperBound, span < ReportHistory.day else {
        return points.removeFirst(ReportHistory.depth / 4)
      }
      spacing = min(spacing * 2, ReportHistory.spacings.upperBound)
      // The newest stays.
      for place in 0..<ReportHistory.depth / 2 { points[place] = points[2 * place + 1] }
      points.removeLast(ReportHistory.depth / 2)
    }
  }

  /// How many keys have a history; those that report later have none.
  package let limit: Int
  private var series: [Series] = []
  /// The place of each key in ``series``; -1 without one.
  private var places: [Int32] = []

  package init(limit: Int = 4096) { self.limit = limit }

  /// The number of keys that have a history.
  package var count: Int { series.count }

  /// The points of a key, the oldest first, with the value as the property has it, and the age in
  /// steps of 100 ms.
  package func points(of key: KeyIndex, at now: Moment) -> [(age: Duration, value: Value)] {
    let place = place(of: key)
    guard place >= 0 else { return [] }
    let found = series[place]
    let tenths = Self.tenths(now)
    return found.points.map { point in
      // A number as short as it was reported: 21.1 and not 21.100000381.
      let number = Double("\(point.number)") ?? Double(point.number)
      let age = Duration.milliseconds(Int64(tenths &- point.tenths) * 100)
      return (age, found.isSwitch ? .boolean(point.number != 0) : .number(number))
    }
  }

  /// How long ago the device reported a key last, in steps of 100 ms; `nil` if it has not since the
  /// start.
  package func lastReport(of key: KeyIndex, at now: Moment) -> Duration? {
    let place = place(of: key)
    guard place >= 0, let heard = series[place].heard else { return nil }
    return .milliseconds(Int64(Self.tenths(now) &- heard) * 100)
  }

  /// Records what a device reported; words and colors have no history.
  package mutating func record(_ value: Value, of key: KeyIndex, at now: Moment) {
    let number: Float
    let isSwitch: Bool
    switch value {
    case .number(let reported): (number, isSwitch) = (Float(reported), false)
    case .boolean(let isOn): (number, isSwitch) = (isOn ? 1 : 0, true)
    case .text, .color: return
    }
    // A number beyond those of four bytes is none that JSON could carry.
    guard number.isFinite else { return }
    var place = place(of: key)
    if place < 0 {
      guard series.count < limit else { return }
      place = add(key, isSwitch: isSwitch)
    } else if series[place].isSwitch != isSwitch {
      // A reload gave the property another type.
      series[place] = Series(isSwitch: isSwitch)
    }
    series[place].record(number, at: Self.tenths(now))
  }

  private static func tenths(_ moment: Moment) -> UInt32 {
    UInt32(truncatingIfNeeded: moment.nanoseconds / 100_000_000) &+ day
  }

  private func place(of key: KeyIndex) -> Int {
    let raw = Int(key.rawValue)
    return raw < places.count ? Int(places[raw]) : -1
  }

  private mutating func add(_ key: KeyIndex, isSwitch: Bool) -> Int {
    let raw = Int(key.rawValue)
    while places.count <= raw { places.append(-1) }
    places[raw] = Int32(series.count)
    series.append(Series(isSwitch: isSwitch))
    return series.count - 1
  }
}

/// A document that outlives the process.
extension ReportHistory {
  /// What an earlier process recorded, and when it wrote that.
  package struct Document {
    package let stamps: JournalStamps
    fileprivate var keys: [JSONValue.Member]

    /// `nil` if the value is no such document.
    package init?(_ document: JSONValue) {
      guard let keys = document["keys"]?.members,
        let high = document["boot"]?.elements?.first?.string.flatMap({ UInt64($0, radix: 16) }),
        let low = document["boot"]?.elements?.last?.string.flatMap({ UInt64($0, radix: 16) }),
        case .integer(let boot) = document["boot_ms"], case .integer(let wall) = document["wall_ms"]
      else { return nil }
      self.keys = keys
      stamps = JournalStamps(
        boot: BootIdentifier(high: high, low: low),
        bootMilliseconds: boot,
        wallMilliseconds: wall
      )
    }

    /// How old it is, a day at most; `nil` while that is unknown.
    package func age(_ clock: JournalClock) -> Duration? {
      let day = Duration.milliseconds(Int64(ReportHistory.day) * 100)
      switch ReplayVerdict(of: stamps, ttl: day, now: clock) {
      case .send(let remaining): return day - remaining
      case .expired: return day
      case .unknown: return nil
      }
    }

    /// Its series with the ages of now; nothing while its age is unknown, or a day.
    fileprivate func aged(_ clock: JournalClock) -> [JSONValue.Member] {
      guard let age = age(clock) else { return [] }
      let tenths = age.wholeMilliseconds / 100
      return tenths >= ReportHistory.day
        ? []
        : keys.map { member in
          let numbers = member.value.elements ?? []
          return .init(
            member.name,
            .array(
              numbers.enumerated().map { place, number in
                guard place % 2 == 1, case .integer(let age) = number else { return number }
                return .integer(age &+ tenths)
              }
            )
          )
        }
    }
  }

  /// The history as a JSON document.
  ///
  /// Each key has a list: the least distance of its points, then the age and the value of each
  /// point, the oldest first. Times are in tenths of a second. `unknown` has what an earlier process recorded of keys that have not appeared yet.
  package func document(
    of registry: Registry,
    _ clock: JournalClock,
    keeping unknown: Document? = nil
  ) -> [UInt8] {
    let stamps = clock.stamps
    let now = Self.tenths(clock.moment)
    let boot = [stamps.boot.high, stamps.boot.low].map { "\"\(String($0, radix: 16))\"" }
    var text = Array(
      """
      {"boot":[\(boot.joined(separator: ","))],"boot_ms":\(stamps.bootMilliseconds),\
      "wall_ms":\(stamps.wallMilliseconds),"keys":{
      """.utf8
    )
    var isFirst = true
    for raw in places.indices where places[raw] >= 0 {
      if !isFirst { text.append(UInt8(ascii: ",")) }
      isFirst = false
      JSONWriter.appendString(registry[KeyIndex(Int32(raw))].key, to: &text)
      series[Int(places[raw])].append(to: &text, at: now)
    }
    for member in unknown?.aged(clock) ?? [] {
      if !isFirst { text.append(UInt8(ascii: ",")) }
      isFirst = false
      JSONWriter.appendString(member.name, to: &text)
      text.append(UInt8(ascii: ":"))
      JSONWriter.append(member.value, to: &text)
    }
    text += Array("}}".utf8)
    return text
  }

  /// Puts what an earlier process recorded, `age` ago, before what was recorded since.
  ///
  /// - Returns: What it recorded of keys that are not known; `nil` for nothing.
  package mutating func restore(
    _ document: Document,
    age: Duration,
    in registry: Registry,
    at now: Moment
  ) -> Document? {
    var unknown: [JSONValue.Member] = []
    let writtenAt = Self.tenths(now) &- UInt32(clamping: age.wholeNanoseconds / 100_000_000)
    let oldest = Self.tenths(now) - Self.day
    for member in document.keys {
      guard let key = registry.index(ofKey: member.name.utf8.span) else {
        unknown.append(member)
        continue
      }
      let isSwitch = registry.definition(of: key).property.kind == .boolean
      guard
        let earlier = Series(member.value, isSwitch: isSwitch, writtenAt: writtenAt, since: oldest)
      else { continue }
      var place = place(of: key)
      if place < 0 {
        guard series.count < limit else { continue }
        place = add(key, isSwitch: isSwitch)
      }
      series[place].prepend(earlier)
    }
    var rest = document
    rest.keys = unknown
    return unknown.isEmpty ? nil : rest
  }
}

extension ReportHistory.Series {
  /// A series of a document that was written at `writtenAt`, without its points before `oldest`;
  /// `nil` if it is of another type, or nothing is left.
  fileprivate init?(
    _ document: JSONValue,
    isSwitch: Bool,
    writtenAt: UInt32,
    since oldest: UInt32
  ) {
    guard let numbers = document.elements, case .integer(let spacing) = numbers.first else {
      return nil
    }
    self.init(isSwitch: isSwitch)
    let limits = ReportHistory.spacings
    self.spacing = min(max(UInt32(clamping: spacing), limits.lowerBound), limits.upperBound)
    var place = 1
    while place + 1 < numbers.count, points.count < ReportHistory.depth {
      defer { place += 2 }
      let value = numbers[place + 1]
      guard case .integer(let age) = numbers[place], (0...Int64(writtenAt - oldest)) ~= age,
        let number = isSwitch ? value.boolean.map({ $0 ? 1 : 0 }) : value.double.map({ Float($0) }),
        number.isFinite
      else { continue }
      let tenths = writtenAt - UInt32(age)
      if let newest = points.last, newest.tenths > tenths { continue }
      points.append(.init(tenths: tenths, number: number))
    }
    if points.isEmpty { return nil }
  }

  fileprivate func append(to text: inout [UInt8], at now: UInt32) {
    text += Array(":[\(spacing)".utf8)
    for point in points {
      let value = isSwitch ? (point.number == 0 ? "false" : "true") : "\(point.number)"
      text += Array(",\(now &- point.tenths),\(value)".utf8)
    }
    text.append(UInt8(ascii: "]"))
  }

  fileprivate mutating func prepend(_ earlier: Self) {
    guard isSwitch == earlier.isSwitch else { return }
    var joined = earlier.points
    if let first = points.first, joined.last?.number == first.number { points.removeFirst() }
    joined += points
    points = Array(joined.suffix(ReportHistory.depth))
    points.reserveCapacity(ReportHistory.depth)
    spacing = max(spacing, earlier.spacing)
  }
}
