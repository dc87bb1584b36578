// Settle
// SPDX-License-Identifier: Apache-2.0

/// Splits a stream of MQTT bytes into packets.
struct PacketSplitter {
  private var rest: [UInt8] = []

  /// Appends bytes and returns the packets that are complete, each with its type (1 to 15).
  mutating func take(_ bytes: some Sequence<UInt8>) -> [(type: UInt8, bytes: ArraySlice<UInt8>)] {
    rest += bytes
    var packets: [(UInt8, ArraySlice<UInt8>)] = []
    var start = 0
    while let end = end(ofPacketAt: start) {
      packets.append((rest[start] >> 4, rest[start..<end]))
      start = end
    }
    rest.removeFirst(start)
    return packets
  }

  /// Where the packet at `start` ends; `nil` if it is incomplete.
  private func end(ofPacketAt start: Int) -> Int? {
    var length = 0
    var place = start + 1
    // At most four bytes of length, seven bits each, the lowest first.
    for shift in stride(from: 0, through: 21, by: 7) {
      guard place < rest.count else { return nil }
      length |= Int(rest[place] & 0x7F) << shift
      place += 1
      if rest[place - 1] < 0x80 { break }
    }
    return place + length <= rest.count ? place + length : nil
  }
}
