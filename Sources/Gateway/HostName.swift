// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// This machine's name, without its domain.
enum HostName {
  static let current: String = {
    var buffer = [CChar](repeating: 0, count: 256)
    guard unsafe gethostname(&buffer, buffer.count - 1) == 0 else { return "host" }
    let name = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return String(decoding: name.prefix { $0 != UInt8(ascii: ".") }, as: UTF8.self)
  }()
}
