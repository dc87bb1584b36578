// Settle
// SPDX-License-Identifier: Apache-2.0

import CNATS
import Glibc
import Operations

/// libnats, which is loaded only where a cluster is configured.
enum NATSLibrary {
  /// Loads the library, once for the process.
  static func load(_ file: String) throws(NATSProblem) {
    var text = [CChar](repeating: 0, count: 512)
    guard unsafe !settle_nats_load(file, &text, Int32(text.count)) else { return }
    throw NATSProblem(
      "cluster: needs libnats (Debian: apt install libnats3.4): \(String(terminated: text))"
    )
  }
}

/// The first connection, on a thread of its own: resolving names and connecting may block.
enum NATSConnecting {
  static func start(_ settings: NATSSettings, _ subjects: [String], _ inbox: NATSInbox) {
    do throws(OperationsError) {
      try WorkerThread { run(settings, subjects, inbox) }.detach()
    } catch {
      inbox.add(.failed("cannot start a thread for the connection"))
    }
  }

  private static func run(_ settings: NATSSettings, _ subjects: [String], _ inbox: NATSInbox) {
    var text = [CChar](repeating: 0, count: 512)
    var handlers = unsafe inbox.handlers
    let made = unsafe CStrings.with(settings) { pointer in
      unsafe settle_nats_connect(pointer, &handlers, &text, Int32(text.count))
    }
    guard let pointer = unsafe made else {
      inbox.releaseFromLibrary()
      inbox.add(.failed(String(terminated: text)))
      return
    }
    let handle = unsafe NATSHandle(pointer)
    for subject in subjects { _ = handle.subscribe(to: subject) }
    guard inbox.add(.opened(handle)) else {
      handle.close()
      inbox.releaseFromLibrary()
      return
    }
    inbox.add(.connected)
  }
}

/// Texts for C, valid as long as this object.
@safe private final class CStrings {
  private var copies: [UnsafeMutablePointer<CChar>] = unsafe []

  deinit {
    while let pointer = unsafe copies.popLast() { unsafe free(pointer) }
  }

  /// The text in C's form; null for none.
  func copy(_ text: String?) -> UnsafePointer<CChar>? {
    guard let text, let pointer = unsafe strdup(text) else { return nil }
    unsafe copies.append(pointer)
    return unsafe UnsafePointer(pointer)
  }

  static func with<Result>(
    _ settings: NATSSettings,
    _ body: (UnsafePointer<settle_nats_settings>) -> Result
  ) -> Result {
    let strings = CStrings()
    var servers = unsafe settings.servers.map { unsafe strings.copy($0) }
    return unsafe servers.withUnsafeMutableBufferPointer { buffer in
      guard let first = buffer.baseAddress else {
        preconditionFailure("A connection has a server.")
      }
      var raw = unsafe settle_nats_settings(
        servers: first,
        server_count: Int32(settings.servers.count),
        name: strings.copy(settings.name),
        user: strings.copy(settings.username),
        password: strings.copy(settings.password),
        credentials: strings.copy(settings.credentialsFile),
        ca: strings.copy(settings.ca),
        certificate: strings.copy(settings.certificate),
        key: strings.copy(settings.key),
        is_encrypted: settings.servers.contains { $0.hasPrefix("tls://") }
      )
      return withExtendedLifetime(strings) { unsafe body(&raw) }
    }
  }
}

extension String {
  /// The text that C wrote into a buffer, up to its zero.
  init(terminated buffer: [CChar]) {
    self.init(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
