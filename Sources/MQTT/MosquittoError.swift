// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import Glibc

/// A failed call of libmosquitto: which one, and why.
struct MosquittoError: Error, Hashable, Sendable, CustomStringConvertible {
  let call: String
  let code: Int32
  /// What the library, the system or the resolver says about it.
  let reason: String

  /// Takes down a failure; to be called right after it, while `errno` still belongs to it.
  init(call: String, code: Int32) {
    let number = errno
    self.call = call
    self.code = code
    reason =
      switch mosq_err_t(code) {
      case MOSQ_ERR_ERRNO: unsafe String(cString: strerror(number))
      case MOSQ_ERR_EAI: unsafe String(cString: gai_strerror(number))
      case MOSQ_ERR_CONN_LOST: "the connection was closed by the other side"
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
