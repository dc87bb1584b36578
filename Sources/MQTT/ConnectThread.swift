// Settle
// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import Glibc
import LastOut
import Operations
import Synchronization

/// Begins one connection on a thread of its own: resolving names and reading files may block.
///
/// A connection that was abandoned is freed on that thread.
final class ConnectThread: Sendable {
  /// An attempt that has ended, with what is left of its round.
  struct Attempt: Sendable {
    var round: AddressRound
    var result: Result
  }

  enum Result: Sendable {
    case connection(Connection)
    case failure(ConnectionProblem)
  }

  /// Finds the addresses of a host; blocks.
  typealias Resolver = @Sendable (_ host: String) throws(UnresolvedName) -> [String]

  private enum Slot: Sendable {
    case working
    case done(Attempt)
    /// Delivered or abandoned.
    case closed
  }

  /// The maximum number of threads in the process, abandoned ones included.
  static let mostThreads = 8
  /// The number of running threads, abandoned ones included.
  private static let running = Atomic<Int>(0)
  /// Whether another thread may start.
  static var hasRoom: Bool { running.load(ordering: .relaxed) < mostThreads }

  private let slot = Locked<Slot>(.working)

  /// Starts an attempt; wakes `waker` when ``result()`` has its result.
  init(
    configuration: MQTTConfiguration,
    round: AddressRound,
    resolve: @escaping Resolver,
    waker: Waker
  ) {
    Self.running.add(1, ordering: .relaxed)
    do throws(OperationsError) {
      try WorkerThread { [self] in
        let attempt = Self.attempt(round, configuration, resolve)
        finish(attempt, waker)
        Self.running.subtract(1, ordering: .relaxed)
      }.detach()
    } catch {
      Self.running.subtract(1, ordering: .relaxed)
      let problem = ConnectionProblem(.unreachable, "cannot start a thread for the connection")
      // The other addresses need a thread too: the client waits before it tries again.
      var round = round
      round.skipRest()
      finish(Attempt(round: round, result: .failure(problem)), waker)
    }
  }

  /// Removes and returns the result; `nil` while there is none.
  func result() -> Attempt? {
    slot.withLock { slot in
      guard case .done(let attempt) = slot else { return nil }
      slot = .closed
      return attempt
    }
  }

  /// Drops the result, now or when it arrives.
  func abandon() {
    // The connection in the slot is freed after the lock.
    _ = slot.withLock { slot in
      defer { slot = .closed }
      return slot
    }
  }

  private func finish(_ attempt: Attempt, _ waker: Waker) {
    let isWanted = slot.withLock { slot in
      guard case .working = slot else { return false }
      slot = .done(attempt)
      return true
    }
    if isWanted { waker.wake() }
  }

  /// Tries the next target of a round; blocks.
  private static func attempt(
    _ round: AddressRound,
    _ configuration: MQTTConfiguration,
    _ resolve: Resolver
  ) -> Attempt {
    var round = round
    do throws(ConnectionProblem) {
      let opened = try connection(&round, configuration, resolve)
      return Attempt(round: round, result: .connection(opened))
    } catch {
      return Attempt(round: round, result: .failure(error))
    }
  }

  private static func connection(
    _ round: inout AddressRound,
    _ configuration: MQTTConfiguration,
    _ resolve: Resolver
  ) throws(ConnectionProblem) -> Connection {
    let target: AddressRound.Target
    do throws(UnresolvedName) {
      target = try round.next(resolve)
    } catch {
      throw ConnectionProblem(.unreachable, error.reason, .unresolved)
    }
    let configuration = configuration.attempt(at: target)
    for (name, path) in configuration.files where unsafe access(path, R_OK) != 0 {
      let reason = unsafe String(cString: strerror(errno))
      throw ConnectionProblem(.refused, "\(name) \(path): \(reason)", .certificate)
    }
    let connection = try Connection(configuration: configuration, target: target)
    do {
      try connection.handle.connect(configuration, address: target.address)
    } catch {
      let reason = connection.reason(error.reason)
      throw ConnectionProblem(.unreachable, reason, connection.trouble(of: reason))
    }
    return connection
  }
}

extension MQTTConfiguration {
  /// The files that TLS reads, with their purpose.
  fileprivate var files: [(name: String, path: String)] {
    guard case .tls = endpoint else { return [] }
    let named = [("CA file", caFile), ("certificate", certificateFile), ("key", keyFile)]
    return named.compactMap { name, path in path.map { (name, $0) } }
  }
}

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
