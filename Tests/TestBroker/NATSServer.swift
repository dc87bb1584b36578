// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations

/// A process of nats-server on loopback, with a folder of its own.
///
/// It dies with this process, however that ends.
package final class NATSServer {
  package struct Options {
    package var hasJetStream = true
    /// A user and a password; without, everyone may connect.
    package var user: (name: String, password: String)?
    /// Serves TLS with this certificate and key.
    package var certificate: (file: String, key: String)?
    /// Answers questions at ``monitorURL``.
    package var isMonitored = false
    /// Its name, the port that the others of its cluster reach it by, and theirs.
    package var cluster: (name: String, port: Int, others: [Int])?

    package init() {}
  }

  private var process: GuardedProcess?
  private let port: PortReservation
  private let monitorPort: PortReservation
  private let folder: String

  package init(_ options: Options = Options()) throws {
    port = try PortReservation()
    monitorPort = try PortReservation()
    folder = try TemporaryFolder.make("settle-nats")
    var lines = ["listen: 127.0.0.1:\(port.port)", "max_payload: 1MB"]
    if options.hasJetStream { lines.append("jetstream { store_dir: \"\(folder)/store\" }") }
    if options.isMonitored { lines.append("http: 127.0.0.1:\(monitorPort.port)") }
    if let user = options.user {
      lines.append("authorization { user: \(user.name), password: \(user.password) }")
    }
    if let certificate = options.certificate {
      lines.append("tls { cert_file: \"\(certificate.file)\", key_file: \"\(certificate.key)\" }")
    }
    if let cluster = options.cluster {
      let routes = cluster.others.map { "nats://127.0.0.1:\($0)" }.joined(separator: ", ")
      lines.append("server_name: \(cluster.name)")
      lines.append("cluster { name: test, listen: 127.0.0.1:\(cluster.port), routes: [\(routes)] }")
    }
    try TextFile.write(lines.joined(separator: "\n") + "\n", to: folder + "/nats.conf")
    try start()
  }

  /// Several that are one engine.
  package static func cluster(of count: Int) throws -> [NATSServer] {
    let ports = try (0..<count).map { _ in try PortReservation() }
    return try ports.indices.map { number in
      var options = Options()
      let others = ports.indices.filter { $0 != number }.map { ports[$0].port }
      options.cluster = ("n\(number)", ports[number].port, others)
      return try NATSServer(options)
    }
  }

  deinit {
    kill()
    TemporaryFolder.remove(folder)
  }

  package var url: String { "nats://127.0.0.1:\(port.port)" }
  package var monitorURL: String { "http://127.0.0.1:\(monitorPort.port)" }

  package func start() throws {
    process = try GuardedProcess(
      ["nats-server", "-c", folder + "/nats.conf"],
      log: folder + "/nats.log"
    )
  }

  package func kill() {
    process?.end(signal: SIGKILL)
    process = nil
  }
}
