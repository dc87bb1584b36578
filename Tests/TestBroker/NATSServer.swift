// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import PrivateBroker

/// A process of nats-server on loopback, with a folder of its own.
///
/// It dies with this process, however that ends.
package final class NATSServer {
  package struct Options {
    package var hasJetStream = true
    /// A user and a password; without, everyone may connect.
    package var user: (name: String, password: String)?

    package init() {}
  }

  private var process: GuardedProcess?
  private let port: PortReservation
  private let folder: String

  package init(_ options: Options = Options()) throws {
    port = try PortReservation()
    folder = try TemporaryFolder.make("settle-nats")
    var lines = ["listen: 127.0.0.1:\(port.port)", "max_payload: 1MB"]
    if options.hasJetStream { lines.append("jetstream { store_dir: \"\(folder)/store\" }") }
    if let user = options.user {
      lines.append("authorization { user: \(user.name), password: \(user.password) }")
    }
    try TextFile.write(lines.joined(separator: "\n") + "\n", to: folder + "/nats.conf")
    try start()
  }

  deinit {
    kill()
    TemporaryFolder.remove(folder)
  }

  package var url: String { "nats://127.0.0.1:\(port.port)" }

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
