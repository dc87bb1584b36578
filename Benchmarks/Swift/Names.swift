// Settle
// SPDX-License-Identifier: Apache-2.0

/// The names of the keys, the same as in the C reference, and a fixed order to change them in.
struct Names {
  /// All names, one after the other; name `i` is `starts[i]..<starts[i + 1]`.
  let bytes: [UInt8]
  let starts: [Int32]
  let order: [Int32]

  init(count: Int) {
    var bytes: [UInt8] = []
    var starts: [Int32] = [0]
    for number in 0..<count {
      bytes.append(contentsOf: "home/room\(number % 100)/device\(number)/level".utf8)
      starts.append(Int32(bytes.count))
    }
    var order = Array(0..<Int32(count))
    var state: UInt64 = 42
    for place in order.indices.dropFirst().reversed() {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      order.swapAt(place, Int((state >> 33) % UInt64(place + 1)))
    }
    self.bytes = bytes
    self.starts = starts
    self.order = order
  }

  var count: Int { order.count }

  func text(_ number: Int) -> String {
    String(decoding: bytes[range(of: number)], as: UTF8.self)
  }

  func range(of number: Int) -> Range<Int> {
    Int(starts[number])..<Int(starts[number + 1])
  }
}
