// Settle
// SPDX-License-Identifier: Apache-2.0

import Operations

/// The entry of libFuzzer, which calls it with each input; `SETTLE_FUZZ_TARGET` names the target.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  FuzzTarget.chosen(unsafe Array(UnsafeBufferPointer(start: data, count: size)))
  return 0
}

/// What can be fuzzed: each target hands bytes to functions that ship.
enum FuzzTarget {
  static let all: [String: @Sendable ([UInt8]) -> Void] = [
    "control": ControlTarget.run,
    "frames": FramesTarget.run,
    "http": HTTPTarget.run,
    "import": ImportTarget.run,
    "journal": JournalTarget.run,
    "mqtt": MQTTTarget.run,
    "peers": PeersTarget.run,
    "records": RecordsTarget.run,
    "yaml": YAMLTarget.run,
  ]

  /// The target that the environment names.
  static let chosen: @Sendable ([UInt8]) -> Void = {
    let name = Environment["SETTLE_FUZZ_TARGET"] ?? ""
    guard let target = all[name] else {
      fatalError("SETTLE_FUZZ_TARGET must be one of: \(all.keys.sorted())")
    }
    return target
  }()
}

/// Splits an input into parts, at the byte that ASCII has for that.
enum Parts {
  static let separator: UInt8 = 0x1E

  static func of(_ bytes: [UInt8]) -> [[UInt8]] {
    bytes.split(separator: separator, omittingEmptySubsequences: false).map(Array.init)
  }

  /// The first line, and the rest after it.
  static func head(_ bytes: [UInt8]) -> (head: [UInt8], rest: [UInt8]) {
    guard let end = bytes.firstIndex(of: 0x0A) else { return (bytes, []) }
    return (Array(bytes[..<end]), Array(bytes[(end + 1)...]))
  }
}
