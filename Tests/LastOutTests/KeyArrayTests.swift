// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@Suite struct KeyArrayTests {
  @Test func `an element belongs to the key with its position`() {
    var array = KeyArray(["a", "b"])
    array[KeyIndex(1)] += "!"
    #expect(array[KeyIndex(0)] == "a")
    #expect(array[KeyIndex(1)] == "b!")
    #expect(array.keys.map(\.rawValue) == [0, 1])
  }

  @Test func `it grows to a count or a key, and shrinks only from its end`() {
    var array = KeyArray<Int>()
    #expect(array.isEmpty == true)
    array.extend(toInclude: KeyIndex(2), with: 7)
    #expect(array.count == 3)
    array.extend(to: 2, with: 8)
    #expect(array.keys.map { array[$0] } == [7, 7, 7])
    array.append(9)
    array.removeLast(2)
    #expect(array.keys.map { array[$0] } == [7, 7])
  }
}
