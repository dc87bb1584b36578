// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker

/// A broker, a server of NATS, and several gateways as members of one cluster, each a process.
///
/// Everything is released with this object.
final class ClusterBench {
  static let partitions = 8
  let broker: TestBroker
  let server: NATSServer
  let witness: RecordingSubscriber
  private let folder: String
  private var processes: [String: GatewayProcess] = [:]
  private var clients: [String: ControlClient] = [:]

  /// `settings` are lines of every member's configuration beside those of the cluster; `broker` runs,
  /// and is used in place of one of its own.
  init(
    devices: String,
    members: [String] = ["a", "b", "c"],
    settings: String = "",
    broker: TestBroker? = nil
  ) throws {
    self.broker = try broker ?? TestBroker()
    try self.broker.start()
    var options = NATSServer.Options()
    options.isMonitored = true
    server = try NATSServer(options)
    witness = try RecordingSubscriber(port: self.broker.port)
    folder = try TemporaryFolder.make("settle-cluster")
    guard unsafe mkdir(folder + "/devices", 0o700) == 0 else {
      throw GatewayProcess.Failure(description: "no folder for devices: \(errno)")
    }
    try TextFile.write(devices, to: folder + "/devices/devices.yaml")
    for member in members { try configure(member, settings: settings) }
    for member in members { try start(member) }
    try awaitOwners()
  }

  deinit {
    clients = [:]
    processes = [:]
    broker.stop()
    TemporaryFolder.remove(folder)
  }

  // MARK: - Members

  /// Writes the settings of a member; `devices` is its folder of device files, and `file` another
  /// name for its settings and its socket.
  func configure(
    _ member: String,
    as file: String? = nil,
    settings: String = "",
    devices: String = "devices",
    partitions: Int = ClusterBench.partitions
  ) throws {
    try TextFile.write(
      """
      mqtt: {url: "mqtt://127.0.0.1:\(broker.port)"}
      socket: \(socketPath(file ?? member))
      devices: \(devices)
      cluster:
        name: test
        member: \(member)
        nats: ["\(server.url)"]
        partitions: \(partitions)
        replicas: 1
        monitor: \(server.monitorURL)
      \(settings)
      """,
      to: folder + "/\(file ?? member).yaml"
    )
  }

  func writeDevices(_ text: String, in name: String) throws {
    guard unsafe mkdir(folder + "/" + name, 0o700) == 0 || errno == EEXIST else {
      throw GatewayProcess.Failure(description: "no folder for devices: \(errno)")
    }
    try TextFile.write(text, to: folder + "/\(name)/devices.yaml")
  }

  /// Starts a process with the settings of `file`; returns at once.
  @discardableResult
  func launch(_ file: String) throws -> GatewayProcess {
    clients[file] = nil
    processes[file] = nil
    let process = try GatewayProcess(
      configuration: folder + "/\(file).yaml",
      socketPath: socketPath(file)
    )
    processes[file] = process
    return process
  }

  /// Starts a member, and returns when its control socket is there.
  func start(_ member: String) throws { try launch(member).awaitSocket() }

  func socketPath(_ member: String) -> String { folder + "/\(member).sock" }

  func process(_ member: String) throws -> GatewayProcess {
    guard let process = processes[member] else {
      throw GatewayProcess.Failure(description: "\(member) does not run")
    }
    return process
  }

  /// The connection to a member's control socket; the same until the member starts again.
  func client(_ member: String) throws -> ControlClient {
    if let client = clients[member] { return client }
    let client = try ControlClient(socketPath(member))
    clients[member] = client
    return client
  }

  func kill(_ member: String) throws {
    try process(member).signal(SIGKILL)
    _ = try process(member).waitForExit()
    clients[member] = nil
    processes[member] = nil
  }

  // MARK: - Owners

  /// Who drives each partition, as a member sees it.
  func owners(_ member: String = "a") throws -> [String?] {
    let status = try ControlClient(socketPath(member)).ask(#"{"status":true}"#)["status"]
    guard case .array(let rows)? = status?["partitions"] else { return [] }
    return rows.map { $0["owner"]?.string }
  }

  /// The members that are there, with their states.
  func members(_ member: String = "a") throws -> [String: String] {
    let status = try ControlClient(socketPath(member)).ask(#"{"status":true}"#)["status"]
    guard case .array(let rows)? = status?["members"] else { return [:] }
    return Dictionary(
      rows.compactMap { row in
        row["name"]?.string.map { ($0, row["state"]?.string ?? "") }
      },
      uniquingKeysWith: { $1 }
    )
  }

  /// Waits until a condition about owners holds; asks each time after the last answer.
  func waitUntil(
    _ member: String = "a",
    _ what: String,
    _ condition: ([String?]) throws -> Bool
  ) throws {
    var wait = Wait()
    while wait.remaining() != nil { if try condition(owners(member)) { return } }
    throw GatewayProcess.Failure(description: "\(what): \(try owners(member)); \(logs())")
  }

  /// Waits until every partition is driven, by all members in equal parts.
  func awaitOwners() throws {
    let names = processes.keys.sorted()
    guard let first = names.first else { return }
    let least = Self.partitions / names.count
    try waitUntil(first, "no owners") { owners in
      names.allSatisfy { name in owners.count { $0 == name } >= least }
        && owners.allSatisfy { $0 != nil }
    }
    for name in names {
      // A change of each device is accepted: its owner drives it.
      for device in devices(of: name, try owners(first)) {
        let client = try ControlClient(socketPath(first))
        _ = try client.ask(#"{"cancel":"\#(device)/level"}"#)
      }
    }
  }

  static func partition(of device: String) -> Int {
    Partition(of: device, count: partitions).number
  }

  /// Those of lamp-1 to lamp-24 that a member drives.
  func devices(of member: String, _ owners: [String?]) -> [String] {
    (1...24).map { "lamp-\($0)" }.filter { owners[Self.partition(of: $0)] == member }
  }

  /// A lamp that a member drives now.
  func device(of member: String) throws -> String {
    guard let device = devices(of: member, try owners("a")).first else {
      throw GatewayProcess.Failure(description: "\(member) drives no lamp")
    }
    return device
  }

  func logs() -> String {
    processes.sorted { $0.key < $1.key }.map { "\($0.key):\n\($0.value.log())" }
      .joined(separator: "\n")
  }
}
