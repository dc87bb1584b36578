// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import JSON
import LastOut
import MQTT

/// The retained topics that show where keys and devices stand.
extension Gateway {
  /// Shows what is due while there is room; `false` when that ran out.
  func showTargets(at now: Moment) -> Bool {
    guard !echo.isEmpty else { return true }
    var payload: [UInt8] = []
    swap(&payload, &line)  // Reused; given back at the end.
    defer { swap(&payload, &line) }
    while links[0].client.canPublish, let place = echo.nextDue(at: now) {
      let item = echo.item(at: place)
      payload.removeAll(keepingCapacity: true)
      append(item, at: now, to: &payload)
      guard echo.note(payload, at: place) else { continue }
      guard links[0].show(payload, on: topic(of: item)) else {
        echo.putBack(place)
        return false
      }
    }
    return true
  }

  private func topic(of item: TargetEcho.Item) -> String {
    switch item {
    case .target(let key): surface.targetTopic(registry[key].key)
    case .targets(let device): surface.targetTopic(registry.devices[device].id)
    case .info(let device): surface.infoTopic(registry.devices[device].id)
    }
  }

  /// Appends what a topic shows; nothing where there is nothing to show.
  private func append(_ item: TargetEcho.Item, at now: Moment, to output: inout [UInt8]) {
    switch item {
    case .target(let key): machine.target(of: key)?.appendBare(to: &output)
    case .targets(let device): appendTargets(ofDevice: device, to: &output)
    case .info(let device): appendInfo(ofDevice: device, at: now, to: &output)
    }
  }

  private func appendTargets(ofDevice device: Int, to output: inout [UInt8]) {
    let keys = registry.indices(ofDevice: device)
    guard !keys.isEmpty else { return }  // It was taken out.
    var separator = UInt8(ascii: "{")
    for raw in keys {
      guard let target = machine.target(of: KeyIndex(raw)) else { continue }
      output.append(separator)
      separator = UInt8(ascii: ",")
      JSONWriter.appendString(registry[KeyIndex(raw)].property.id, to: &output)
      output.append(UInt8(ascii: ":"))
      JSONWriter.append(target.json, to: &output)
    }
    if output.isEmpty { output.append(separator) }
    output.append(UInt8(ascii: "}"))
  }

  private func appendInfo(ofDevice device: Int, at now: Moment, to output: inout [UInt8]) {
    let keys = registry.indices(ofDevice: device)
    guard !keys.isEmpty else { return }
    var separator = UInt8(ascii: "{")
    for raw in keys {
      let status = machine.status(KeyIndex(raw))
      output.append(separator)
      separator = UInt8(ascii: ",")
      JSONWriter.appendString(registry[KeyIndex(raw)].property.id, to: &output)
      output.append(literal: #":{"target":"#)
      JSONWriter.append(status.target?.json ?? .null, to: &output)
      output.append(literal: #","actual":"#)
      JSONWriter.append(status.actual?.json ?? .null, to: &output)
      output.append(literal: #","phase":"#)
      if let phase = status.phase {
        JSONWriter.appendString(phase.rawValue, to: &output)
      } else {
        output.append(literal: "null")
      }
      output.append(literal: #","age_ms":"#)
      if let since = status.since {
        JSONWriter.appendInteger(since.milliseconds(until: now), to: &output)
      } else {
        output.append(literal: "null")
      }
      output.append(UInt8(ascii: "}"))
    }
    output.append(UInt8(ascii: "}"))
  }

  /// What `get` shows of a key.
  func targetRow(_ key: KeyIndex, at now: Moment) -> TargetRow {
    let status = machine.status(key)
    return TargetRow(
      key: registry[key].key,
      target: status.target?.json,
      actual: status.actual?.json,
      phase: status.phase,
      ageMilliseconds: status.since.map { Int($0.milliseconds(until: now)) }
    )
  }
}

extension Moment {
  /// Whole milliseconds from here to `end`.
  fileprivate func milliseconds(until end: Moment) -> Int64 {
    Int64(bitPattern: end.nanoseconds &- nanoseconds) / 1_000_000
  }
}
