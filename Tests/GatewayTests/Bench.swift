// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// One scenario's broker, configuration, devices and gateway, and an independent client.
///
/// Everything is released with this object. The client receives all messages.
final class Bench {
  let broker: TestBroker
  let folder: String
  private(set) var gateway: GatewayProcess?
  private var heard: RecordingSubscriber?
  private let settings: String
  private let mqtt: String

  /// Prepares everything; nothing runs yet.
  ///
  /// `settings` are lines of the configuration beside `mqtt`, `socket` and `devices`; `mqtt` holds
  /// members beside the address, such as `, protocol: 3.1.1`.
  init(
    devices: String,
    settings: String = "",
    mqtt: String = "",
    options: TestBroker.Options = .init()
  ) throws {
    broker = try TestBroker(options: options)
    folder = try TemporaryFolder.make("settle-gateway")
    self.settings = settings
    self.mqtt = mqtt
    guard unsafe mkdir(folder + "/devices", 0o700) == 0 else {
      throw GatewayProcess.Failure(description: "no folder for devices: \(errno)")
    }
    try TextFile.write(devices, to: folder + "/devices/devices.yaml")
    try TextFile.write(configuration, to: folder + "/settle.yaml")
  }

  deinit {
    heard = nil
    gateway = nil
    broker.stop()
    TemporaryFolder.remove(folder + "/devices")
    TemporaryFolder.remove(folder)
  }

  var socketPath: String { folder + "/s.sock" }

  private var configuration: String {
    """
    mqtt: {url: "mqtt://127.0.0.1:\(broker.port)"\(mqtt)}
    socket: \(socketPath)
    devices: devices
    \(settings)
    """
  }

  /// A bench whose gateway is connected, and its client.
  static func running(
    devices: String,
    settings: String = "",
    mqtt: String = "",
    options: TestBroker.Options = .init()
  ) throws -> Bench {
    let bench = try Bench(devices: devices, settings: settings, mqtt: mqtt, options: options)
    try bench.broker.start()
    try bench.startGateway()
    return bench
  }

  /// The client that hears everything; connected when first asked for.
  func witness() throws -> RecordingSubscriber {
    if let heard { return heard }
    let fresh = try RecordingSubscriber(port: broker.port)
    heard = fresh
    return fresh
  }

  /// The gateway that runs.
  func running() throws -> GatewayProcess {
    guard let gateway else { throw GatewayProcess.Failure(description: "no gateway runs") }
    return gateway
  }

  /// Starts a gateway and returns when it is online at the broker.
  func startGateway(arguments: [String] = [], environment: [String: String] = [:]) throws {
    let isFresh = heard == nil
    let witness = try witness()
    // The broker may have been away without its notice; what it publishes itself may be refused.
    guard isFresh || witness.catchUp() else {
      throw GatewayProcess.Failure(description: "no broker: \(broker.log())")
    }
    let before = onlineCount(witness.messages)
    try launchGateway(arguments: arguments, environment: environment)
    guard witness.waitFor({ self.onlineCount($0) > before }) else {
      throw GatewayProcess.Failure(description: "not online: \(gateway?.log() ?? "")")
    }
  }

  /// Starts a gateway and returns when its control socket is there; the broker may be absent.
  func launchGateway(
    arguments: [String] = [],
    environment: [String: String] = [:],
    descriptorLimit: Int? = nil
  ) throws {
    gateway = nil
    let fresh = try GatewayProcess(
      configuration: folder + "/settle.yaml",
      socketPath: socketPath,
      arguments: arguments,
      environment: environment,
      descriptorLimit: descriptorLimit
    )
    gateway = fresh
    if let processID = broker.processID { Patience.follow(processID) }
    try fresh.awaitSocket()
  }

  func client() throws -> ControlClient { try ControlClient(socketPath) }

  /// Lets one client ask for more than it reads until it is dropped, and then makes one more
  /// change, to 77777; returns the client who asked with `keen`, and read.
  func dropsWhoDoesNotRead(_ lazy: String, times: Int, keen line: String) throws -> ControlClient {
    let lazyClient = try client()
    for _ in 0..<times { lazyClient.send(lazy) }
    let keen = try client()
    keen.send(line)
    _ = try keen.ask(#"{"get":"*","id":"there"}"#)

    let client = try client()
    var value = 0
    while try running().lines(containing: "Control client dropped").isEmpty, value < 20_000 {
      value += 1
      #expect(try client.ask(#"{"key":"dev0/level","set":\#(value)}"#)["phase"] == "accepted")
      keen.passOverReplies()
    }

    #expect(value < 20_000)
    client.send(#"{"key":"dev0/level","set":77777,"id":"last"}"#)
    withExtendedLifetime(lazyClient) {}
    return keen
  }

  private func onlineCount(_ messages: [RecordingSubscriber.Message]) -> Int {
    messages.count { $0.topic == "settle/status" && $0.text == "online" && !$0.retained }
  }
}

extension RecordingSubscriber {
  /// Waits for a message on `topic` with `text`.
  func waitFor(_ topic: String, _ text: String, within limit: Duration = .patience) -> Bool {
    waitFor(within: limit) { $0.contains { $0.topic == topic && $0.text == text } }
  }

  /// Switches the desk lamp on and waits until it is told that the broker has the command and the
  /// lamp has answered: what was published before has been taken, and nothing is under way.
  func switchesTheLampOn() -> Bool {
    publish("settle/desk-lamp/power/set", "ON")
    guard waitFor("zigbee2mqtt/desk_lamp/set", #"{"state":"ON"}"#) else { return false }
    publish("zigbee2mqtt/desk_lamp", #"{"state":"ON"}"#)
    return waitFor { messages in
      let told = messages.filter { $0.topic == "settle/desk-lamp/power/event" }
      return [#""phase":"sent""#, #""phase":"confirmed""#].allSatisfy { phase in
        told.contains { $0.text.contains(phase) }
      }
    }
  }

  /// Waits for `count` messages on `topic` and returns their texts; fewer if they do not come.
  func texts(
    on topic: String,
    count: Int,
    within limit: Duration = .patience
  ) -> [String] {
    _ = waitFor(within: limit) { $0.count { $0.topic == topic } >= count }
    return texts(on: topic)
  }
}

/// The times of a series of changes.
enum Pace {
  /// Calls `body` with 0, 1, 2 … at fixed distances, never early, at most until `isOver`.
  static func every(
    _ distance: Duration,
    count: Int,
    until isOver: () -> Bool = { false },
    _ body: (Int) throws -> Void
  ) rethrows {
    let start = EventLoop.now()
    for number in 0..<count {
      if isOver() { return }
      let due = start.advanced(by: distance * number).nanoseconds
      var time = timespec(tv_sec: Int(due / 1_000_000_000), tv_nsec: Int(due % 1_000_000_000))
      unsafe clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil)
      try body(number)
    }
  }
}
