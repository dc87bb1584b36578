// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// This machine's name.
package enum HostName {
  /// The name up to the first dot; `localhost` when the system has none.
  package static var current: String {
    var buffer = [CChar](repeating: 0, count: 256)
    guard unsafe gethostname(&buffer, buffer.count - 1) == 0 else { return "localhost" }
    let bytes = buffer.prefix { $0 != 0 && $0 != 0x2E }.map { UInt8(bitPattern: $0) }
    return bytes.isEmpty ? "localhost" : String(decoding: bytes, as: UTF8.self)
  }
}
