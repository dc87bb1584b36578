// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import LastOut
import Testing

/// An array whose pages get memory of their own with their first write.
struct LazyArrayTests {
  @Test func `an element that was never written is the standard one`() {
    let array = LazyArray(repeating: 7, count: 100)
    #expect(array.indices.allSatisfy { array[$0] == 7 })
  }

  @Test func `a write changes one element, on every page`() {
    var array = LazyArray(repeating: 0, count: 100)
    for place in stride(from: 0, to: 100, by: 33) { array[place] = place + 1 }
    #expect(array.indices.filter { array[$0] != 0 } == [0, 33, 66, 99])
    #expect(array[KeyIndex(66)] == 67)
  }

  @Test func `only pages that were written have memory of their own`() {
    var array = LazyArray(repeating: "standard", count: 400_000)
    #expect(array.ownPageCount == 0)
    array[5000] = "one"
    array[5001] = "two"
    array[KeyIndex(399_999)] = "three"
    #expect(array.ownPageCount == 2)
    #expect(array[5002] == "standard")
  }

  @Test func `a copy keeps its elements, whichever of both is changed`() {
    var array = LazyArray(repeating: [0], count: 70)
    array[1] = [1]
    var copy = array
    array[1] = [2]
    array[39].append(3)
    copy[69] = [4]
    #expect(copy[1] == [1] && copy[39] == [0] && copy[69] == [4])
    #expect(array[1] == [2] && array[39] == [0, 3] && array[69] == [0])
    copy.extend(to: 100)
    #expect(copy.count == 100 && copy[99] == [0] && copy[1] == [1] && array.count == 70)
  }

  @Test func `it grows with standard elements and shrinks from its end`() {
    var array = LazyArray(repeating: 4, count: 3)
    array[2] = 5
    array.extend(to: 7000)
    array.extend(to: 10)
    #expect(array.count == 7000)
    #expect((array[2], array[3], array[6999]) == (5, 4, 4))
    array[6999] = 6
    array.removeLast(6996)
    #expect(array.count == 4 && array.ownPageCount == 1 && array[2] == 5)
    array.extend(to: 7000)
    #expect(array[6999] == 4)
  }

  @Test func `elements are released with their array`() {
    final class Tracked {}
    weak var tracked: Tracked?
    do {
      let element = Tracked()
      tracked = element
      var array = LazyArray<Tracked?>(repeating: nil, count: 40)
      array[39] = element
      let copy = array
      array[39] = nil
      #expect(copy[39] === element)
    }
    #expect(tracked == nil)
  }
}
