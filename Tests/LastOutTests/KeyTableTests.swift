// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@Suite struct KeyTableTests {
  @Test func `names get dense numbers in the order of their first use`() {
    var table = KeyTable(capacity: 1)
    for number in 0..<5000 {
      #expect(table.intern("device-\(number)/brightness") == KeyIndex(Int32(number)))
    }
    #expect(table.count == 5000)
    #expect(table.find("device-4711/brightness") == KeyIndex(4711))
    #expect(table.find("device-5000/brightness") == nil)
    #expect(table.name(of: KeyIndex(42)) == "device-42/brightness")
  }

  @Test(arguments: 0...70)
  func `names of every length differ in each of their bytes`(length: Int) {
    var table = KeyTable()
    let name = [UInt8](repeating: 0x61, count: length)
    let index = table.intern(name.span)
    for position in 0..<length {
      var other = name
      other[position] = 0x62
      #expect(table.find(other.span) == nil)
      #expect(table.intern(other.span) != index)
    }
    #expect(table.find(name.span) == index)
    #expect(table.find(String(repeating: "a", count: length)) == index)
  }

  @Test func `a name and the same name with zeros after it are two names`() {
    var table = KeyTable()
    for length in 0...70 {
      let name = [UInt8](repeating: 0, count: length)
      #expect(table.intern(name.span) == KeyIndex(Int32(length)))
    }
    for length in 0...70 {
      let name = [UInt8](repeating: 0, count: length)
      #expect(table.find(name.span) == KeyIndex(Int32(length)))
      #expect(table.name(of: KeyIndex(Int32(length))).utf8.count == length)
    }
  }

  @Test func `a name may be empty, hold zeros, or be no text at all`() {
    var table = KeyTable()
    let names: [[UInt8]] = [[], [0], [0, 0], [0xFF, 0xFE], Array("ü/ß".utf8)]
    let indices = names.map { table.intern($0.span) }
    #expect(Set(indices).count == names.count)
    #expect(names.map { table.find($0.span) } == indices)
    #expect(table.name(of: indices[3]) == "\u{FFFD}\u{FFFD}")
    #expect(table.name(of: indices[4]) == "ü/ß")
  }
}
