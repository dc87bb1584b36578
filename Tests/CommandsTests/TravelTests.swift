// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Testing
import Values

@testable import Commands

@Suite struct TravelTests {
  private let property = Property.seen()

  /// The time after 20 was reported and 40 sent at 0 ms; other values were passed meanwhile.
  private func travel(from start: Value? = 20, passed: Value...) -> Travel {
    var travel = Travel()
    travel.begin(.of(.of(40), message: 1), from: start, at: .at(0))
    for value in passed { travel.pass(value) }
    return travel
  }

  @Test(
    arguments: [(20, true), (30, true), (40, true), (10, false), (50, false)] as [(Value, Bool)]
  )
  func `values between the start and the target are interim`(value: Value, isInterim: Bool) {
    #expect(travel().includes(value, of: property) == isInterim)
  }

  @Test func `values up to one that was never confirmed are interim too`() {
    #expect(travel(passed: 80).includes(70, of: property) == true)
    #expect(travel(passed: 80).includes(90, of: property) == false)
  }

  @Test func `while the start is unknown the first value beside the target is the start`() {
    var travel = travel(from: nil)
    #expect(travel.includes(90, of: property) == true)
    travel.move(from: nil, to: 40, toward: 40, isAtTarget: true, isIdle: false, at: .at(0))
    #expect(travel.includes(90, of: property) == true)
    travel.move(from: 40, to: 30, toward: 40, isAtTarget: false, isIdle: false, at: .at(0))
    #expect(travel.includes(90, of: property) == false)
    #expect(travel.includes(35, of: property) == true)
  }

  @Test func `an open time keeps its start`() {
    var travel = travel()
    travel.begin(.of(.of(30), message: 2), from: 90, at: .at(0))
    #expect(travel.includes(80, of: property) == false)
    #expect(travel.includes(20, of: property) == true)
    travel.end()
    #expect(travel.isOpen == false)
  }

  @Test func `a key that does not travel is at rest once its value is shown`() {
    var travel = Travel()
    let command = InFlightCommand.of(.of(.boolean(true)), message: 1, restTime: nil)
    travel.begin(command, from: .boolean(false), at: .at(0))
    travel.confirm(.boolean(true), at: .at(0))
    #expect(travel.isOpen == false)
    #expect(travel.deadline == nil)
  }

  @Test func `each nearer report prolongs the time, a farther one does not`() {
    var travel = travel()
    travel.confirm(40, at: .at(0))
    #expect(travel.deadline == .at(5000))
    for (previous, value, milliseconds, end) in [
      (40, 20, 1000, 5000), (20, 25, 2000, 7000), (25, 25, 3000, 7000), (25, 39, 6000, 11_000),
    ] as [(Value, Value, Int, Int)] {
      travel.move(
        from: previous,
        to: value,
        toward: 40,
        isAtTarget: false,
        isIdle: true,
        at: .at(milliseconds)
      )
      #expect(travel.deadline == .at(end))
    }
  }

  @Test func `colors have a way as well`() {
    var travel = Travel()
    let (red, orange, yellow) = (Color.hex(0xFF0000), Color.hex(0xFF8000), Color.hex(0xFFFF00))
    let command = InFlightCommand.of(.of(.color(yellow)), message: 1)
    travel.begin(command, from: .color(red), at: .at(0))
    #expect(travel.includes(.color(.hex(0x0000FF)), of: property) == true)
    travel.confirm(.color(yellow), at: .at(0))
    for (previous, color, end) in [(yellow, red, 5000), (red, orange, 6000)] {
      travel.move(
        from: .color(previous),
        to: .color(color),
        toward: .color(yellow),
        isAtTarget: false,
        isIdle: true,
        at: .at(1000)
      )
      #expect(travel.deadline == .at(end))
    }
  }
}

extension Color {
  fileprivate static func hex(_ number: Int) -> Color {
    .rgb(
      red: UInt8(number >> 16 & 255),
      green: UInt8(number >> 8 & 255),
      blue: UInt8(number & 255)
    )
  }
}
