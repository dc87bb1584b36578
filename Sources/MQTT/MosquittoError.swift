// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc

/// A failed call of libmosquitto, and the reason.
struct MosquittoError: Error, Hashable, Sendable, CustomStringConvertible {
  let call: String
  let code: Int32
  /// The reason in the words of the library or the system.
  let reason: String

  /// Creates the error of a failed call; call it immediately after, while `errno` is still set.
  init(call: String, code: Int32) {
    let number = errno
    self.call = call
    self.code = code
    reason =
      switch mosq_err_t(code) {
      case MOSQ_ERR_ERRNO: unsafe String(cString: strerror(number))
      case MOSQ_ERR_CONN_LOST: ConnectionProblem.closedByPeer
      case MOSQ_ERR_KEEPALIVE: "no answer to a ping within the keep-alive time"
      default: unsafe String(cString: mosquitto_strerror(code))
      }
  }

  var description: String { "\(call): \(reason)" }
}

extension MosquittoError {
  /// Whether the connection is gone, rather than the message refused.
  var isConnectionLost: Bool {
    switch mosq_err_t(code) {
    case MOSQ_ERR_NO_CONN, MOSQ_ERR_CONN_LOST, MOSQ_ERR_ERRNO, MOSQ_ERR_TLS, MOSQ_ERR_NOMEM: true
    default: false
    }
  }
}
