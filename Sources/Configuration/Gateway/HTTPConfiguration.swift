// Settle
// SPDX-License-Identifier: Apache-2.0

package struct HTTPConfiguration: Hashable, Sendable {
  /// Where to listen.
  package enum Address: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  /// `HOST:PORT` or `unix:PATH`.
  package var listen: [String]
  package var tokenFile: String?
  /// Read from the file.
  package var token: String?
  /// Further names that clients may use for this gateway, such as a proxy's.
  package var hosts: [String] = []

  package init(listen: [String], tokenFile: String? = nil) {
    self.listen = listen
    self.tokenFile = tokenFile
  }

  /// ``listen``, read; what is no address was refused before.
  package var addresses: [Address] { listen.compactMap { ListenAddress.read($0) } }
}
