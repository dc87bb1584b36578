// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import TestBroker

/// A bench whose gateway has a journal.
extension Bench {
  /// A bench with a journal whose gateway is connected, and its client.
  static func journalling(
    _ devices: String,
    settings: String = "",
    journal: String = "commit: 100ms"
  ) throws -> Bench {
    try running(devices: devices, settings: "journal: {path: journal.db, \(journal)}\n\(settings)")
  }

  var journalPath: String { folder + "/journal.db" }

  /// Kills the gateway and waits until it is gone.
  func crash() throws {
    let gateway = try running()
    gateway.signal(SIGKILL)
    guard gateway.waitForExit() == -SIGKILL else {
      throw GatewayProcess.Failure(description: "not killed: \(gateway.log())")
    }
  }

  /// Ends the gateway in good order.
  func stop() throws {
    let gateway = try running()
    gateway.signal(SIGTERM)
    guard gateway.waitForExit() == 0 else {
      throw GatewayProcess.Failure(description: "did not end well: \(gateway.log())")
    }
  }

  /// The first event of a key with this phase on its MQTT topic.
  func event(of key: String, _ phase: String) throws -> JSONValue {
    let topic = "settle/\(key)/event"
    let mark = #""phase":"\#(phase)""#
    let witness = try witness()
    guard witness.waitFor({ $0.contains { $0.topic == topic && $0.text.contains(mark) } }),
      let found = witness.texts(on: topic).first(where: { $0.contains(mark) })
    else { throw GatewayProcess.Failure(description: "no \(phase): \(witness.texts(on: topic))") }
    return try JSONParser.parse(found)
  }
}
