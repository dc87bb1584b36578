// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Exit codes, after sysexits (SPEC section 6).
enum ExitCode {
  static let success: Int32 = 0
  static let failure: Int32 = 1
  static let usage: Int32 = 64
  static let badInput: Int32 = 65
  static let noGateway: Int32 = 69
  static let configuration: Int32 = 78
}

/// What is said to a person beside the results.
enum StandardError {
  static func write(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    var written = 0
    while written < bytes.count {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        unsafe Glibc.write(
          2, buffer.baseAddress?.advanced(by: written), bytes.count - written)
      }
      guard count > 0 else { return }
      written += count
    }
  }
}

/// The environment of this process.
enum ProcessEnvironment {
  static func all() -> [String: String] {
    var result: [String: String] = [:]
    var entry = unsafe environ
    while let text = unsafe entry.pointee {
      let line = unsafe String(cString: text)
      if let equals = line.firstIndex(of: "=") {
        result[String(line[..<equals])] = String(line[line.index(after: equals)...])
      }
      unsafe entry += 1
    }
    return result
  }
}
