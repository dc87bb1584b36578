// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import PrivateBroker

/// Processes of nats-server on loopback, one or a cluster of three, each with a folder of its own.
///
/// They die with this process, however that ends.
final class NATSServers {
  struct Options {
    var count = 1
    var hasJetStream = true
    /// A user and a password; without, everyone may connect.
    var user: (name: String, password: String)?
  }

  private final class Server {
    var process: SpawnedProcess?
    var lifeline: Lifeline?
    let clients: PortReservation
    let routes: PortReservation
    let folder: String

    init() throws {
      clients = try PortReservation()
      routes = try PortReservation()
      folder = try TemporaryFolder.make("settle-nats")
    }
  }

  private var servers: [Server] = []

  init(_ options: Options = Options()) throws {
    for _ in 0..<options.count { servers.append(try Server()) }
    let routes = servers.map { "nats://127.0.0.1:\($0.routes.port)" }.joined(separator: ", ")
    for (number, server) in servers.enumerated() {
      var lines = [
        "listen: 127.0.0.1:\(server.clients.port)", "server_name: n\(number)",
        "max_payload: 1MB",
      ]
      if options.hasJetStream {
        lines.append("jetstream { store_dir: \"\(server.folder)/store\" }")
      }
      if options.count > 1 {
        lines.append(
          "cluster { name: test, listen: \"127.0.0.1:\(server.routes.port)\", routes: [\(routes)] }"
        )
      }
      if let user = options.user {
        lines.append("authorization { user: \(user.name), password: \(user.password) }")
      }
      try TextFile.write(lines.joined(separator: "\n") + "\n", to: server.folder + "/nats.conf")
    }
    for number in servers.indices { try start(number) }
  }

  deinit {
    for number in servers.indices { kill(number) }
    for server in servers {
      _ = try? SpawnedProcess(arguments: ["rm", "-rf", server.folder]).wait(milliseconds: 5000)
    }
  }

  var urls: [String] { servers.map { "nats://127.0.0.1:\($0.clients.port)" } }

  func url(_ number: Int) -> String { urls[number] }

  func start(_ number: Int) throws {
    let server = servers[number]
    let lifeline = try Lifeline()
    let script = """
      exec 3<&0
      (trap '' HUP INT TERM; read line <&3 || kill -9 $$) &
      exec setsid nats-server -c "$1" </dev/null 3<&-
      """
    server.lifeline = lifeline
    server.process = try SpawnedProcess(
      arguments: ["/bin/sh", "-c", script, "sh", server.folder + "/nats.conf"],
      input: lifeline.reader,
      output: .file(server.folder + "/nats.log"),
      errors: .file(server.folder + "/nats.log")
    )
  }

  func kill(_ number: Int) {
    guard let process = servers[number].process else { return }
    process.signal(SIGKILL)
    process.wait(milliseconds: 5000)
    servers[number].lifeline?.release()
    servers[number].lifeline = nil
    servers[number].process = nil
  }

  func log(_ number: Int) -> String { TextFile.read(servers[number].folder + "/nats.log") ?? "" }
}
