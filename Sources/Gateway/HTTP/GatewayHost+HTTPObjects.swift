// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import GatewayCore
import JSON
import LastOut
import Operations

/// Devices and properties as HTTP shows them.
extension GatewayHost {
  /// A device, what it has and where all of that stands.
  func deviceObject(_ number: Int, at now: Moment) -> JSONValue {
    let device = registry.devices[number]
    let properties = registry.indices(ofDevice: number).map { raw in
      JSONValue.Member(
        registry.properties[Int(raw)].property.id,
        propertyObject(KeyIndex(raw), at: now)
      )
    }
    return .object([
      "id": .string(device.id), "name": .string(device.name),
      "online": .boolean(core.commands.isDeviceOnline(number)), "properties": .object(properties),
    ])
  }

  /// A property: what it takes, how it settles, and what `get` shows of it.
  func propertyObject(_ key: KeyIndex, at now: Moment) -> JSONValue {
    let property = registry[key].property
    var members = stateMembers(key, at: now)
    members.append(.init("type", .string(property.kind.name)))
    if let name = property.name { members.append(.init("name", .string(name))) }
    if let rule = property.kind.numberRule {
      if let range = rule.range {
        let ends = [range.lowerBound, range.upperBound]
        members.append(.init("range", .array(ends.map { JSONValue(shortest: $0) })))
      }
      if let step = rule.step { members.append(.init("step", JSONValue(shortest: step))) }
      if let unit = rule.unit { members.append(.init("unit", .string(unit))) }
    }
    switch property.kind {
    case .choice(let words), .action(let words):
      members.append(.init("values", .array(words.map { .string($0) })))
    case .number, .integer, .boolean, .text, .color: break
    }
    members.append(.init("can_confirm", .boolean(property.confirm != nil)))
    members.append(.init("delay_ms", Self.milliseconds(property.policy.delay)))
    members.append(
      .init("max_wait_ms", property.policy.maxWait.map { Self.milliseconds($0) } ?? .null)
    )
    members.append(.init("leading", .boolean(property.policy.leading)))
    members.append(.init("min_interval_ms", Self.milliseconds(property.policy.minInterval)))
    members.append(
      .init("confirm_ms", property.confirm.map { Self.milliseconds($0.within) } ?? .null)
    )
    members.append(.init("urgent", .array(property.urgent.map(\.json))))
    return .object(members)
  }

  /// Where a property stands: what `get` shows of it, whether its device is there, what waits, and
  /// how its newest command came to nothing if it did.
  func stateMembers(_ key: KeyIndex, at now: Moment) -> [JSONValue.Member] {
    let target = targetRow(key, at: now)
    var members: [JSONValue.Member] = []
    if case .object(let row) = target.json { members = row }
    let device = registry.properties[Int(key.rawValue)].device
    members.append(.init("online", .boolean(core.commands.isDeviceOnline(device))))
    members.append(.init("pending", pendingObject(key, at: now)))
    let failure = http?.failure(of: target.key, in: target.phase)
    members.append(
      .init(
        "failure",
        failure.map { .object(["value": $0.value ?? .null, "reason": .string($0.reason ?? "")]) }
          ?? .null
      )
    )
    return members
  }

  private func pendingObject(_ key: KeyIndex, at now: Moment) -> JSONValue {
    guard let status = core.commands.pendingStatus(key),
      case .object(let members) = pendingRow(status, at: now).json
    else { return .null }
    return .object(members.filter { $0.name != "key" })
  }

  private static func milliseconds(_ duration: Duration) -> JSONValue {
    JSONValue(shortest: duration / .milliseconds(1))
  }
}
