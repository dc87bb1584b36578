// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HTTP
import Testing

@Suite struct EventRingTests {
  private func read(
    _ buffer: EventRing,
    from start: UInt64,
    matching pattern: Pattern? = nil,
    room: Int = 10_000
  ) -> (text: String, cursor: UInt64) {
    var cursor = start
    var bytes: [UInt8] = []
    buffer.read(from: &cursor, matching: pattern, room: room, into: &bytes)
    return (String(decoding: bytes, as: UTF8.self), cursor)
  }

  private func filled(_ count: Int, capacity: Int) -> EventRing {
    var buffer = EventRing(capacity: capacity, startingAt: 100)
    for number in 0..<count {
      buffer.append(Array(#"{"n":\#(number)}"#.utf8), key: number % 2 == 0 ? "a/x" : "b/y")
    }
    return buffer
  }

  @Test func `events carry consecutive numbers and end with a blank line`() {
    let (text, cursor) = read(filled(2, capacity: 8), from: 100)

    #expect(text == "id: 100\ndata: {\"n\":0}\n\nid: 101\ndata: {\"n\":1}\n\n")
    #expect(cursor == 102)
  }

  @Test func `a client continues at its cursor`() {
    #expect(read(filled(3, capacity: 8), from: 102).text == "id: 102\ndata: {\"n\":2}\n\n")
    #expect(read(filled(3, capacity: 8), from: 103).text.isEmpty)
  }

  @Test func `only so many events are kept, the newest`() {
    let buffer = filled(20, capacity: 8)

    #expect(buffer.first == 112)
    #expect(buffer.next == 120)
    #expect(read(buffer, from: 100).text.hasPrefix("id: 112\n"))
  }

  @Test func `only so many bytes are kept, and always the newest event`() {
    var buffer = EventRing(capacity: 1000, startingAt: 1, byteLimit: 500)
    for _ in 0..<100 { buffer.append(Array(repeating: 0x61, count: 100), key: "a/x") }
    #expect(buffer.next - buffer.first == 4)

    buffer.append(Array(repeating: 0x62, count: 5000), key: "a/x")
    #expect(buffer.next - buffer.first == 1)
  }

  @Test func `a pattern skips events that do not match`() {
    let (text, cursor) = read(filled(4, capacity: 8), from: 100, matching: Pattern("b/*"))

    #expect(text == "id: 101\ndata: {\"n\":1}\n\nid: 103\ndata: {\"n\":3}\n\n")
    #expect(cursor == 104)
    var place: UInt64 = 102
    filled(4, capacity: 8).skip(from: &place, matching: Pattern("b/*"))
    #expect(place == 103)
    filled(4, capacity: 8).skip(from: &place, matching: Pattern("c/*"))
    #expect(place == 104)
  }

  @Test func `a small buffer still accepts one whole event`() {
    let (text, cursor) = read(filled(3, capacity: 8), from: 100, room: 10)

    #expect(text == "id: 100\ndata: {\"n\":0}\n\n")
    #expect(cursor == 101)
  }

  @Test func `a gap names the missing events`() {
    let gap = String(decoding: EventStreamText.gap(after: "7", until: 100), as: UTF8.self)
    let odd = String(decoding: EventStreamText.gap(after: "x\ny", until: 100), as: UTF8.self)

    #expect(gap == "event: gap\ndata: {\"after\":7,\"until\":100}\n\n")
    #expect(odd == "event: gap\ndata: {\"after\":null,\"until\":100}\n\n")
  }
}
