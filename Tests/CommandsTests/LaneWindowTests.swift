// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Testing

@testable import Commands

/// How a window learns, without a machine around it.
struct LaneWindowTests {
  private static let bounds = LaneLimits.Window(start: 4, min: 1, max: 32)

  /// Commands that are confirmed one after the other, `interval` apart, each after `time`.
  private static func confirm(
    _ window: inout LaneWindow,
    _ count: Int,
    every interval: Int,
    after time: Int,
    from start: Int = 0,
    isFull: Bool = true
  ) {
    for number in 1...count {
      window.begin()
      window.end()
      window.confirm(
        after: .milliseconds(time),
        isFull: isFull,
        at: .at(start + number * interval)
      )
    }
  }

  private static func learned(every interval: Int, after time: Int, count: Int = 60) -> Int {
    var window = LaneWindow(bounds)
    window.begin()  // The lane is never idle.
    confirm(&window, count, every: interval, after: time)
    return window.capacity
  }

  @Test func `the window has room for one and a half round trips, and two more`() {
    // 20 a second, 200 ms each: four fit into the mesh.
    #expect(Self.learned(every: 50, after: 200) == 8)
    // 50 a second, 300 ms each: fifteen.
    #expect(Self.learned(every: 20, after: 300) == 24)
  }

  @Test func `the window stays within its bounds`() {
    #expect(Self.learned(every: 1, after: 1000) == 32)
    #expect(Self.learned(every: 1000, after: 1) == 4)
  }

  @Test func `a confirmation opens the window by one at most`() {
    for count in 1...10 { #expect(Self.learned(every: 1, after: 1000, count: count) <= 4 + count) }
  }

  @Test func `a lane with nothing waiting does not learn`() {
    var window = LaneWindow(Self.bounds)
    window.begin()
    Self.confirm(&window, 60, every: 20, after: 300, isFull: false)
    #expect(window.capacity == 4)
  }

  @Test func `two devices that do not confirm halve the window, one does not`() {
    var window = LaneWindow(Self.bounds)
    window.begin()
    Self.confirm(&window, 60, every: 20, after: 300)
    window.lose(sent: .at(1000), isProof: true, at: .at(6000))
    #expect(window.capacity == 24)
    window.lose(sent: .at(1000), isProof: true, at: .at(6001))
    #expect(window.capacity == 12)
    // Sent before the window was halved: the same crowd.
    window.lose(sent: .at(1100), isProof: true, at: .at(6002))
    #expect(window.capacity == 12)
    #expect(window.lostCount == 3)
  }

  @Test func `devices that have confirmed nothing yet close the window to its start at most`() {
    var window = LaneWindow(Self.bounds)
    window.begin()
    Self.confirm(&window, 60, every: 20, after: 300)
    for moment in 2...9 {
      window.lose(sent: .at(moment * 10_000), isProof: false, at: .at(moment * 10_000 + 5000))
    }
    #expect(window.capacity == 4)
    #expect(window.lostCount == 8)
    // What a device leaves out that has confirmed before closes it further.
    window.lose(sent: .at(100_000), isProof: true, at: .at(105_000))
    #expect(window.capacity == 2)
  }

  @Test func `after losses the window opens to three quarters, and slowly beyond`() {
    var window = LaneWindow(Self.bounds)
    window.begin()
    Self.confirm(&window, 60, every: 20, after: 300)
    window.lose(sent: .at(1000), isProof: true, at: .at(6000))
    window.lose(sent: .at(1000), isProof: true, at: .at(6000))
    Self.confirm(&window, 19, every: 20, after: 300, from: 6000)
    #expect(window.capacity == 18)
    Self.confirm(&window, 41, every: 20, after: 300, from: 7000)
    #expect(window.capacity == 21)
  }

  @Test func `a mesh that is busy closes the window as two losses do`() {
    var busy = LaneWindow(Self.bounds)
    busy.begin()
    Self.confirm(&busy, 60, every: 20, after: 300)
    var lossy = busy
    #expect(busy.capacity == 24)
    busy.refuse(at: .at(6000))
    lossy.lose(sent: .at(1000), isProof: true, at: .at(6000))
    lossy.lose(sent: .at(1000), isProof: true, at: .at(6000))
    #expect(busy.capacity == 12)
    #expect(lossy.capacity == 12)
    for count in 1...60 {
      Self.confirm(&busy, 1, every: 20, after: 300, from: 6000 + 20 * count)
      Self.confirm(&lossy, 1, every: 20, after: 300, from: 6000 + 20 * count)
      #expect(busy.capacity == lossy.capacity)
    }
  }

  @Test func `what a busy mesh says within a round trip counts once`() {
    var window = LaneWindow(Self.bounds)
    window.begin()
    Self.confirm(&window, 60, every: 20, after: 300)
    for moment in [6000, 6001, 6299] { window.refuse(at: .at(moment)) }
    #expect(window.capacity == 12)
    window.refuse(at: .at(6300))
    #expect(window.capacity == 6)
    for round in 0..<9 { window.refuse(at: .at(7000 + 300 * round)) }
    #expect(window.capacity == 1)
  }

  @Test func `a slow device among fast ones does not narrow the window`() {
    var window = LaneWindow(Self.bounds)
    window.begin()
    for round in 0..<20 {
      Self.confirm(&window, 3, every: 50, after: 200, from: round * 200)
      Self.confirm(&window, 1, every: 50, after: 3000, from: round * 200 + 150)
    }
    #expect(window.capacity == 8)
  }

  @Test func `patience follows the round trip`() {
    var window = LaneWindow(Self.bounds)
    #expect(window.patience == .milliseconds(500))
    window.begin()
    Self.confirm(&window, 100, every: 50, after: 1000)
    #expect(window.patience >= .seconds(1) && window.patience < .milliseconds(1100))
    #expect(window.presumedTime == .seconds(1))
  }

  @Test func `other bounds keep what was learned as far as it fits`() {
    var window = LaneWindow(Self.bounds)
    window.begin()
    Self.confirm(&window, 60, every: 20, after: 300)
    #expect(window.limited(to: .init(start: 4, min: 1, max: 10)).capacity == 10)
    #expect(window.limited(to: .init(start: 30, min: 28, max: 40)).capacity == 28)
    #expect(window.limited(to: Self.bounds).capacity == 24)
  }
}
