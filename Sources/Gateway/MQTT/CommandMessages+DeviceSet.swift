// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import JSON
import LastOut
import Routing
import Values

/// Messages on `settle/<device>/set`: several properties of a device change at one instant.
extension CommandMessages {
  func set(
    device: Int,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    let set = DeviceSet(device: device, members: try SetPayload.members(payload))
    try change(set, topic, origin, at: now)
  }

  /// Messages on `settle/<device>/<property>/light/set`: a lamp in Home Assistant's JSON schema.
  ///
  /// Its power waits for the levels beside it: a lamp that is off and swept gets one message.
  func set(
    light key: KeyIndex,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    let device = context.registry.device(of: key)
    let command = try SetPayload.members(payload)
    guard let members = context.lights.members(for: .object(command), of: key, in: context.registry)
    else { throw .unsupported("the property belongs to no lamp") }
    try change(
      DeviceSet(device: device, members: members),
      topic,
      origin,
      isJoint: true,
      at: now
    )
  }

  private func change(
    _ set: DeviceSet,
    _ topic: Span<UInt8>,
    _ origin: ChangeOrigin?,
    isJoint: Bool = false,
    at now: Moment
  ) throws(ValidationError) {
    let device = set.device
    do throws(ValidationError) {
      let changes = try set.changes(in: context.registry)
      let members = changes.options.isEmpty ? nil : changes.options
      try context.core.change(
        changes.values,
        receivedOn: Text.of(topic),
        at: now,
        ChangeOptions(origin: origin, members: members, isJoint: isJoint)
      )
      context.counters[device].changes += UInt64(changes.values.count)
    } catch {
      // The sender gets one reply for the whole message; each property gets an event.
      set.reject(because: error.description, origin: nil, in: context, at: now)
      throw error
    }
  }

  /// Whether a message names a property of the device, which has the event of its rejection.
  func namesProperty(_ payload: Span<UInt8>, ofDevice device: Int) -> Bool {
    guard let members = try? SetPayload.members(payload) else { return false }
    return !DeviceSet(device: device, members: members).named(in: context.registry).isEmpty
  }
}
