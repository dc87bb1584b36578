// Settle
// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import COpenSSL
import Values

/// Why TLS failed, in words that name the fix.
///
/// libmosquitto only reports "certificate verify failed"; OpenSSL has the cause.
enum TLSFailure {
  /// The result of verifying the broker's certificate; call it inside the library's log callback.
  static func verdict(of mosquitto: OpaquePointer?) -> Int? {
    guard let mosquitto = unsafe mosquitto, let tls = unsafe mosquitto_ssl_get(mosquitto) else {
      return nil
    }
    return unsafe SSL_get_verify_result(OpaquePointer(tls))
  }

  /// The words for an error message of the library; `nil` if the message itself is clear.
  static func words(
    _ complaint: String,
    verdict: Int?,
    host: String,
    authority: String?
  ) -> String? {
    if complaint.has("certificate verify failed"), let verdict {
      return words(verdict, host: host, authority: authority)
    }
    if complaint.has("host name verification failed") { return otherName(host) }
    return alerts.first { complaint.has($0.alert) }?.words
  }

  /// TLS alerts of the broker about the client certificate.
  private static let alerts: [(alert: String, words: String)] = [
    ("alert certificate required", "the broker wants a client certificate; see `cert`"),
    (
      "alert handshake failure", "the broker refused the TLS handshake; does it want a certificate?"
    ),
    ("alert unknown ca", "the broker does not trust the authority of the client certificate"),
    ("alert certificate expired", "the client certificate has expired"),
    ("alert bad certificate", "the broker refused the client certificate"),
    ("alert protocol version", "the broker speaks no TLS 1.2 or newer"),
    ("wrong version number", "the broker does not speak TLS at this port"),
  ]

  private static func words(_ verdict: Int, host: String, authority: String?) -> String {
    switch Int32(clamping: verdict) {
    // The library's own check of the name sets no code.
    case X509_V_OK, X509_V_ERR_UNSPECIFIED, X509_V_ERR_HOSTNAME_MISMATCH,
      X509_V_ERR_IP_ADDRESS_MISMATCH:
      return otherName(host)
    case X509_V_ERR_CERT_HAS_EXPIRED: return "the broker's certificate has expired"
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the broker's certificate is not valid yet; is the clock right?"
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
      X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
      X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_SIGNATURE_FAILURE:
      let known = authority.map { "in \($0)" } ?? "in the system's store"
      return "the broker's certificate was issued by an authority that is not \(known)"
    default:
      let text = unsafe X509_verify_cert_error_string(verdict).map { unsafe String(cString: $0) }
      return "the broker's certificate was refused: \(text ?? "error \(verdict)")"
    }
  }

  /// The words for a certificate that is not for `host`.
  static func otherName(_ host: String) -> String {
    "the broker's certificate is for another name than \(host)"
  }
}
