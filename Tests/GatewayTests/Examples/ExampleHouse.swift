// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker

/// The setup of the examples: a private broker, the shipped settings and devices, which obey, the
/// gateway, and a working folder.
///
/// Everything is released with this object.
final class ExampleHouse {
  let folder: String
  let broker: TestBroker
  let witness: RecordingSubscriber
  /// Known once a gateway listens.
  private var httpPort: Int?
  private let devices: HouseDevices
  private var gateway: GatewayProcess?

  /// What every file of changes in the folder holds.
  static let changes = """
    {"key":"desk-lamp/brightness","set":10,"at":0}
    {"key":"desk-lamp/brightness","set":40,"at":120}
    {"key":"boiler/target_temperature","set":21.5,"at":200}

    """

  /// The scene that examples set.
  private static let scenes = "scenes: {evening: {desk-lamp: {power: true, brightness: 80}}}\n"

  /// What a Zigbee2MQTT with one lamp more has announced.
  private static let announcement = """
    [{"ieee_address":"0x00158d000bb3b93f","type":"Router","friendly_name":"Stehlampe",\
    "supported":true,"disabled":false,"definition":{"model":"LED1545G12","vendor":"IKEA",\
    "description":"A bulb","exposes":[{"type":"light","features":[\
    {"name":"state","property":"state","access":7,"type":"binary","value_on":"ON",\
    "value_off":"OFF"},{"name":"brightness","property":"brightness","access":7,"type":"numeric",\
    "value_min":0,"value_max":254}]}]}}]
    """

  init(withGateway: Bool) throws {
    folder = try TemporaryFolder.make("settle-example")
    broker = try TestBroker()
    try broker.start()
    witness = try RecordingSubscriber(port: broker.port)
    devices = try HouseDevices(port: broker.port)
    witness.publish("zigbee2mqtt/bridge/devices", Array(Self.announcement.utf8), retain: true)
    try prepareFolder()
    if withGateway { try startGateway() }
  }

  deinit {
    gateway = nil
    broker.stop()
    TemporaryFolder.remove(folder)
  }

  /// Variables that lead the programs to this house, and away from the machine's own settings.
  var environment: [String: String] {
    var variables = Variables.all().filter { !$0.key.hasPrefix("SETTLE_") }
    let programs = BuiltProgram.path("settle").split(separator: "/").dropLast()
    variables["PATH"] =
      "/\(programs.joined(separator: "/")):\(variables["PATH"] ?? "/bin:/usr/bin")"
    variables.merge(addresses) { $1 }
    variables["HOME"] = folder + "/home"
    for name in ["XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "NO_COLOR"] { variables[name] = nil }
    variables["LANG"] = "C.UTF-8"
    return variables
  }

  /// Where the broker, the gateway's socket, its settings and its HTTP are.
  var addresses: [String: String] {
    [
      "SETTLE_CONFIG": folder + "/settle.yaml",
      "SETTLE_MQTT_URL": "mqtt://127.0.0.1:\(broker.port)",
      "SETTLE_SOCKET": folder + "/s.sock",
      "SETTLE_HTTP_LISTEN": "127.0.0.1:0",
    ]
  }

  /// The line with this house's addresses in place of those that documents use.
  func localized(_ line: String) -> String {
    guard let httpPort else { return line }
    return line.split(separator: "localhost:8484", omittingEmptySubsequences: false)
      .joined(separator: "127.0.0.1:\(httpPort)")
  }

  /// Waits until a gateway has joined the broker and has heard of the devices.
  func awaitGateway() throws {
    let known = [
      "settle/status", "settle/desk-lamp/power", "settle/desk-lamp/brightness",
      "settle/boiler/target_temperature", "settle/hall-blind/position",
    ]
    guard
      witness.waitFor({ messages in
        known.allSatisfy { topic in messages.contains { $0.topic == topic } }
      })
    else {
      throw GatewayProcess.Failure(description: "no gateway: \(gateway?.log() ?? "")")
    }
  }

  private func startGateway() throws {
    let gateway = try GatewayProcess(
      configuration: folder + "/settle.yaml",
      socketPath: folder + "/s.sock",
      environment: addresses
    )
    self.gateway = gateway
    try gateway.awaitSocket()
    httpPort = try gateway.httpPort()
    try awaitGateway()
  }

  private func prepareFolder() throws {
    let script = """
      cd "$1" && cp -r "$2/docs/examples" config && cp -r config/settle.yaml config/devices . &&
      mkdir docs && cp -r config docs/examples && mkdir -p home/.config/fish/completions
      """
    let process = try SpawnedProcess(
      arguments: ["/bin/sh", "-c", script, "sh", folder, ExampleCollection.root]
    )
    guard process.wait() == .exited(code: 0) else {
      throw GatewayProcess.Failure(description: "\(folder) could not be prepared")
    }
    try TextFile.write(Self.changes, to: folder + "/changes.ndjson")
    try TextFile.write(Self.scenes, to: folder + "/devices/scenes.yaml")
  }
}
