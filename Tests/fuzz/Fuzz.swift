// Settle
// SPDX-License-Identifier: Apache-2.0

import FuzzTargets
import Operations

/// The entry of libFuzzer, which calls it with each input; `SETTLE_FUZZ_TARGET` names the target.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
  target(unsafe Array(UnsafeBufferPointer(start: data, count: size)))
  return 0
}

/// The target that the environment names.
private let target: @Sendable ([UInt8]) -> Void = {
  let name = Environment["SETTLE_FUZZ_TARGET"] ?? ""
  guard let target = FuzzTarget.all[name] else {
    fatalError("SETTLE_FUZZ_TARGET must be one of: \(FuzzTarget.all.keys.sorted())")
  }
  return target
}()
