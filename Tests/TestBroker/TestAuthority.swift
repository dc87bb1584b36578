// Settle
// SPDX-License-Identifier: Apache-2.0

import Operations

/// A certificate authority for tests, made with the openssl command; its folder is removed with it.
package final class TestAuthority {
  private let directory: String
  /// The authority's own certificate.
  package var file: String { directory + "/ca.pem" }

  package init() throws {
    directory = try TemporaryFolder.make("settle-ca")
    try Self.openssl([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
      "-days", "2", "-subj", "/CN=Test authority", "-keyout", directory + "/ca.key", "-out",
      directory + "/ca.pem",
    ])
  }

  deinit { TemporaryFolder.remove(directory) }

  /// A certificate for `name`, and its key; with `days` of 0 it expires at once.
  package func certificate(name: String, days: Int = 2) throws -> (file: String, key: String) {
    let base = directory + "/" + name
    try TextFile.write("subjectAltName=DNS:\(name)\n", to: base + ".ext")
    try Self.openssl([
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
      "/CN=\(name)", "-keyout", base + ".key", "-out", base + ".csr",
    ])
    try Self.openssl([
      "x509", "-req", "-in", base + ".csr", "-CA", file, "-CAkey", directory + "/ca.key",
      "-CAcreateserial", "-days", String(days), "-extfile", base + ".ext", "-out", base + ".pem",
    ])
    return (base + ".pem", base + ".key")
  }

  private static func openssl(_ arguments: [String]) throws {
    let process = try SpawnedProcess(
      arguments: ["openssl"] + arguments,
      output: .discarded,
      errors: .discarded
    )
    guard process.wait() == .exited(code: 0) else {
      throw TestBrokerError("openssl \(arguments.first ?? "") failed")
    }
  }
}
