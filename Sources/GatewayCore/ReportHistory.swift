// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Values

/// What devices reported of each key over the last hours: numbers, and on or off.
///
/// A key gets room for ``depth`` points, 768 bytes, with its first report, and at most ``limit``
/// keys get any: 3.3 MB. A report that changes nothing is one comparison.
package struct ReportHistory: Sendable {
  /// A value that a device reported; it holds until the next point.
  package struct Point: Equatable, Sendable {
    /// In tenths of a second since the clock's start.
    fileprivate var tenths: UInt32
    fileprivate var number: Float

    /// When it was reported.
    package var at: Moment { Moment(nanoseconds: UInt64(tenths) * 100_000_000) }
  }

  /// The most points of one key.
  package static let depth = 96
  /// The least and the greatest distance of points of a number, in tenths of a second.
  ///
  /// 96 points that are 15 minutes apart span ``day``.
  private static let spacings: ClosedRange<UInt32> = 50...9000
  /// In tenths of a second.
  private static let day: UInt32 = 864_000

  /// The points of one key, the oldest first.
  private struct Series {
    var points: [Point] = []
    let isSwitch: Bool
    var spacing = ReportHistory.spacings.lowerBound

    init(isSwitch: Bool) {
      self.isSwitch = isSwitch
      points.reserveCapacity(ReportHistory.depth)
    }

    mutating func record(_ number: Float, at tenths: UInt32) {
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

  /// The points of a key, the oldest first, with the value as the property has it.
  package func points(of key: KeyIndex) -> [(at: Moment, value: Value)] {
    let place = place(of: key)
    guard place >= 0 else { return [] }
    let found = series[place]
    return found.points.map { point in
      // A number as short as it was reported: 21.1 and not 21.100000381.
      let number = Double("\(point.number)") ?? Double(point.number)
      return (point.at, found.isSwitch ? .boolean(point.number != 0) : .number(number))
    }
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
    var place = place(of: key)
    if place < 0 {
      guard series.count < limit else { return }
      place = add(key, isSwitch: isSwitch)
    } else if series[place].isSwitch != isSwitch {
      // A reload gave the property another type.
      series[place] = Series(isSwitch: isSwitch)
    }
    let tenths = UInt32(truncatingIfNeeded: now.nanoseconds / 100_000_000)
    series[place].record(number, at: tenths)
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
