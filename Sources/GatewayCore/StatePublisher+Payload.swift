// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// The payloads of the gateway's retained topics.
extension StatePublisher.Item {
  /// What the topic shows; empty where there is nothing to show, which clears it at the broker.
  func payload(of commands: borrowing CommandStateMachine, at now: Moment) -> [UInt8] {
    var output: [UInt8] = []
    switch self {
    case .target(let key): commands.dispatcher.log.statuses.target(of: key)?.appendBare(to: &output)
    case .targets(let device): Self.appendTargets(of: commands, ofDevice: device, to: &output)
    case .info(let device): Self.appendInfo(of: commands, ofDevice: device, at: now, to: &output)
    }
    return output
  }

  private static func appendTargets(
    of commands: borrowing CommandStateMachine,
    ofDevice device: Int,
    to output: inout [UInt8]
  ) {
    let registry = commands.registry
    let keys = registry.indices(ofDevice: device)
    guard !keys.isEmpty else { return }  // The device was removed.
    var separator = UInt8(ascii: "{")
    for raw in keys {
      guard let target = commands.dispatcher.log.statuses.target(of: KeyIndex(raw)) else {
        continue
      }
      output.append(separator)
      separator = UInt8(ascii: ",")
      JSONWriter.appendString(registry.definition(of: KeyIndex(raw)).property.id, to: &output)
      output.append(UInt8(ascii: ":"))
      JSONWriter.append(target.json, to: &output)
    }
    if output.isEmpty { output.append(separator) }
    output.append(UInt8(ascii: "}"))
  }

  private static func appendInfo(
    of commands: borrowing CommandStateMachine,
    ofDevice device: Int,
    at now: Moment,
    to output: inout [UInt8]
  ) {
    let registry = commands.registry
    let keys = registry.indices(ofDevice: device)
    guard !keys.isEmpty else { return }
    var separator = UInt8(ascii: "{")
    for raw in keys {
      let status = commands.dispatcher.status(KeyIndex(raw))
      output.append(separator)
      separator = UInt8(ascii: ",")
      JSONWriter.appendString(registry.definition(of: KeyIndex(raw)).property.id, to: &output)
      output.append(contentsOf: #":{"target":"#.utf8)
      JSONWriter.append(status.target?.json ?? .null, to: &output)
      output.append(contentsOf: #","actual":"#.utf8)
      JSONWriter.append(status.actual?.json ?? .null, to: &output)
      output.append(contentsOf: #","phase":"#.utf8)
      JSONWriter.append(status.phase.map { .string($0.rawValue) } ?? .null, to: &output)
      output.append(contentsOf: #","age_ms":"#.utf8)
      if let since = status.since {
        let age = Int64(bitPattern: now.nanoseconds &- since.nanoseconds) / 1_000_000
        JSONWriter.appendInteger(age, to: &output)
      } else {
        output.append(contentsOf: "null".utf8)
      }
      let waiting = commands.dispatcher.sendQueue.commandCount(KeyIndex(raw))
      if waiting > 1 {
        output.append(contentsOf: #","waiting":"#.utf8)
        JSONWriter.appendInteger(Int64(waiting), to: &output)
      }
      output.append(UInt8(ascii: "}"))
    }
    output.append(UInt8(ascii: "}"))
  }
}
