// Settle
// SPDX-License-Identifier: Apache-2.0

import Simulation
import Testing

@Suite struct GestureTests {
  @Test func `a drag makes one change per mark and ends at its target`() {
    let points = Gesture.drag(from: 20, to: 120, steps: 100, milliseconds: 1600)
    #expect(points.count == 100)
    #expect(points.first?.value == 21)
    #expect(points.last == Gesture.Point(at: 1600, value: 120))
    #expect(zip(points, points.dropFirst()).allSatisfy { $0.at < $1.at })
  }

  @Test func `a gesture is fastest in the middle of a drag, at 1.875 times its mean speed`() throws
  {
    let points = Gesture.drag(from: 0, to: 1000, steps: 1000, milliseconds: 1000)
    let gaps = zip(points, points.dropFirst()).map { $1.at - $0.at }
    let shortest = try #require(gaps.min())
    #expect(abs(1 / shortest - 1.875) < 0.001)
    #expect(gaps.firstIndex(of: shortest).map { (400...600).contains($0) } == true)
  }

  @Test(arguments: [0, 0.1, 0.25, 0.5, 0.77, 1])
  func `time is the inverse of path`(part: Double) {
    #expect(abs(Gesture.path(atTime: Gesture.time(atPath: part)) - part) < 1e-9)
  }

  @Test func `taps follow their pauses`() {
    #expect(Gesture.taps(pauses: [200, 150, 300]) == [0, 200, 350, 650])
  }
}
