// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Testing
import Values

@testable import Commands

@Suite struct TransitionTests {
  private let property = Property.seen()

  /// A transition that began at 20 and has passed the given values.
  private func transition(passed: Value...) -> Transition {
    var transition = Transition()
    transition.begin(from: 20)
    for value in passed { transition.pass(value) }
    return transition
  }

  @Test(
    arguments: [(20, true), (30, true), (40, true), (10, false), (50, false)] as [(Value, Bool)]
  )
  func `values between the start and the target are interim`(value: Value, isInterim: Bool) {
    #expect(transition().includes(value, to: 40, of: property) == isInterim)
  }

  @Test func `values up to one that was never confirmed are interim too`() {
    #expect(transition(passed: 80).includes(70, to: 40, of: property) == true)
    #expect(transition(passed: 80).includes(90, to: 40, of: property) == false)
  }

  @Test func `everything is interim while the start is unknown`() {
    var transition = Transition()
    transition.begin(from: nil)
    #expect(transition.includes(90, to: 40, of: property) == true)
  }

  @Test func `an open transition keeps its start`() {
    var transition = transition()
    transition.begin(from: 90)
    #expect(transition.includes(80, to: 40, of: property) == false)
    transition.end()
    #expect(transition.isOpen == false)
  }
}
