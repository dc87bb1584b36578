// Settle
// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// OpenSSL's settings for one connection.
///
/// The library connects to a numeric address, so OpenSSL itself verifies the certificate for the
/// host of the URL, and names that host to the broker. There is no option to disable that.
@safe struct TLSContext: ~Copyable {
  let pointer: OpaquePointer

  private init(_ pointer: OpaquePointer) {
    unsafe self.pointer = pointer
  }

  /// Reads the files of the configuration; `nil` without TLS.
  static func make(_ configuration: MQTTConfiguration) throws(ConnectionProblem) -> TLSContext? {
    guard case .tls(let host, _) = configuration.endpoint else { return nil }
    ERR_clear_error()
    guard let pointer = unsafe SSL_CTX_new(TLS_client_method()) else {
      throw problem("TLS", of: host)
    }
    let context = unsafe TLSContext(pointer)
    unsafe SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
    unsafe SSL_CTX_ctrl(pointer, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
    try context.loadFiles(configuration)
    try context.verify(host)
    return context
  }

  deinit {
    unsafe SSL_CTX_free(pointer)
  }

  private func loadFiles(_ configuration: MQTTConfiguration) throws(ConnectionProblem) {
    if let file = configuration.caFile {
      guard unsafe SSL_CTX_load_verify_file(pointer, file) == 1 else {
        throw Self.problem("CA file", of: file)
      }
    } else {
      unsafe SSL_CTX_set_default_verify_paths(pointer)
    }
    // OpenSSL must not prompt for the passphrase of an encrypted key.
    unsafe SSL_CTX_set_default_passwd_cb(pointer) { _, _, _, _ in 0 }
    if let file = configuration.certificateFile {
      guard unsafe SSL_CTX_use_certificate_chain_file(pointer, file) == 1 else {
        throw Self.problem("certificate", of: file)
      }
    }
    if let file = configuration.keyFile {
      guard
        unsafe SSL_CTX_use_PrivateKey_file(pointer, file, SSL_FILETYPE_PEM) == 1,
        unsafe SSL_CTX_check_private_key(pointer) == 1
      else { throw Self.problem("key", of: file) }
    }
  }

  /// Accepts only a certificate for `host`, and names it to the broker.
  private func verify(_ host: String) throws(ConnectionProblem) {
    let names = unsafe SSL_CTX_get0_param(pointer)
    unsafe X509_VERIFY_PARAM_set_hostflags(names, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    guard
      unsafe X509_VERIFY_PARAM_set1_ip_asc(names, host) == 1
        || X509_VERIFY_PARAM_set1_host(names, host, 0) == 1
    else { throw Self.problem("the host's name", of: host) }
    unsafe SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER) { isGood, context in
      unsafe isGood == 1 ? 1 : TLSContext.acceptsCommonName(context)
    }
    unsafe SSL_CTX_set_info_callback(pointer) { tls, event, _ in
      guard event & SSL_CB_HANDSHAKE_START != 0, let tls = unsafe tls else { return }
      // The library has named its numeric address; without a name there must be none.
      let name = unsafe X509_VERIFY_PARAM_get0_host(SSL_get0_param(tls), 0)
      let kind = Int(TLSEXT_NAMETYPE_host_name)
      unsafe SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, kind, name)
    }
  }

  /// Accepts a certificate that names the number of the URL's host as if it were a name, without
  /// wildcards, as self-made ones often do.
  private static func acceptsCommonName(_ context: OpaquePointer?) -> Int32 {
    guard
      unsafe X509_STORE_CTX_get_error(context) == X509_V_ERR_IP_ADDRESS_MISMATCH,
      let number = unsafe X509_VERIFY_PARAM_get1_ip_asc(X509_STORE_CTX_get0_param(context))
    else { return 0 }
    defer { unsafe CRYPTO_free(number, nil, 0) }
    let certificate = unsafe X509_STORE_CTX_get_current_cert(context)
    guard
      unsafe X509_check_host(certificate, number, 0, UInt32(X509_CHECK_FLAG_NO_WILDCARDS), nil) == 1
    else { return 0 }
    unsafe X509_STORE_CTX_set_error(context, X509_V_OK)
    return 1
  }

  private static func problem(_ name: String, of subject: String) -> ConnectionProblem {
    let code = ERR_peek_last_error()
    let words = unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) }
    let reason = "\(name) \(subject): \(words ?? "OpenSSL error \(code)")"
    return ConnectionProblem(.unreachable, reason, .certificate)
  }
}
