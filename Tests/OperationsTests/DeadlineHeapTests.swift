// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import Operations

@Suite struct DeadlineHeapTests {
  @Test(arguments: 0..<20 as Range<UInt64>)
  func `the first slot is the earliest after any sequence of changes`(seed: UInt64) {
    var random = Sequence64(state: seed)
    var heap = DeadlineHeap()
    let slots = (0..<30).map { _ in heap.makeSlot() }
    var model: [Int: Moment] = [:]
    for _ in 0..<500 {
      let slot = slots[Int.random(in: 0..<30, using: &random)]
      if Bool.random(using: &random) {
        let deadline = Moment(nanoseconds: .random(in: 0..<50, using: &random))
        heap.set(slot, to: deadline)
        model[slot] = deadline
      } else {
        heap.remove(slot)
        model[slot] = nil
      }
      #expect(heap.first?.deadline == model.values.min())
      #expect(heap.deadline(of: slot) == model[slot])
      let due = heap.due(at: Moment(nanoseconds: 25))
      #expect(Set(due) == Set(model.filter { $0.value.nanoseconds <= 25 }.keys))
    }
  }

  @Test func `a freed slot is used again, without its deadline`() {
    var heap = DeadlineHeap()
    let slot = heap.makeSlot()
    heap.set(slot, to: Moment(nanoseconds: 1))
    heap.freeSlot(slot)
    #expect(heap.first == nil)
    #expect(heap.makeSlot() == slot)
    #expect(heap.deadline(of: slot) == nil)
  }
}

/// A small generator with a seed (splitmix64).
private struct Sequence64: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
