// Settle
// SPDX-License-Identifier: Apache-2.0

/// The HTTP server's addresses and access rules.
package struct HTTPConfiguration: Hashable, Sendable {
  package enum Address: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  /// `HOST:PORT` or `unix:PATH`.
  package var listen: [String]
  package var tokenFile: String?
  /// From the token file, the environment or a credential of the service manager.
  package var token: String?
  /// Further host names that clients may use for this gateway, such as a proxy's.
  package var hosts: [String] = []

  package init(listen: [String], tokenFile: String? = nil) {
    self.listen = listen
    self.tokenFile = tokenFile
  }

  /// The parsed addresses of ``listen``; the reader rejects invalid ones.
  package var addresses: [Address] { listen.compactMap { ListenAddress.read($0) } }
}
