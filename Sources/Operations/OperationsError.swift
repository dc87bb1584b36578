// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc

/// A failed system call, and the reason.
package struct OperationsError: Error, Hashable, Sendable, CustomStringConvertible {
  package let call: String
  package let code: Int32
  package let reason: String
  package init(call: String, code: Int32, reason: String) {
    self.call = call
    self.code = code
    self.reason = reason
  }

  /// Creates an error from an error number.
  package init(call: String, code: Int32) {
    self.init(call: call, code: code, reason: unsafe String(cString: strerror(code)))
  }

  /// Creates an error from a negative error number of libuv.
  init(call: String, libuv code: Int32) {
    self.init(call: call, code: -code, reason: unsafe String(cString: uv_strerror(code)))
  }

  package var description: String { "\(call): \(reason)" }
}
