// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import GatewayCore
import JSON
import LastOut
import Values

/// The messages of a change that is not to be made.
struct ChangePreview {
  private let context: GatewayContext
  private let host: GatewayHost
  private let now: Moment

  init(_ context: GatewayContext, _ host: GatewayHost, at now: Moment) {
    self.context = context
    self.host = host
    self.now = now
  }

  /// The messages that values would be sent in now, and why they would not be.
  func messages(
    _ values: [(key: KeyIndex, value: Value)],
    options: [JSONValue.Member]? = nil,
    from origin: ChangeOrigin? = nil
  ) -> [MessagePreview] {
    let registry = context.registry
    let publishes = context.core.previews(
      of: values,
      options: options,
      allows: { allows($1, of: $0, from: origin) },
      at: now
    )
    return publishes.compactMap { publish in
      for (asked, value) in values {
        let keys = [asked] + registry.groups.members(of: asked)
        guard let carried = keys.first(where: { publish.keys.contains($0) }) else { continue }
        let isGroups = registry[asked].commandTopic == publish.topic
        return message(publish, isGroups ? asked : carried, value)
      }
      return nil
    }
  }

  private func message(
    _ publish: CommandPublish,
    _ key: KeyIndex,
    _ value: Value
  ) -> MessagePreview {
    let registry = context.registry
    var preview = MessagePreview()
    preview.key = registry[key].key
    preview.value = value.json
    preview.topic = publish.topic
    preview.payload = String(decoding: publish.payload, as: UTF8.self)
    preview.qos = publish.qos
    preview.keys = publish.keys.map { registry[$0].key }
    preview.reason =
      context.core.isUnchanged(value, of: key)
      ? "the device has this value" : host.obstacle(to: registry.device(of: key), at: now)
    return preview
  }

  /// Whether a member of a group would accept a value.
  private func allows(
    _ value: Value,
    of member: KeyIndex,
    from origin: ChangeOrigin?
  ) -> Bool {
    do throws(ValidationError) {
      let change = try context.core.memberChange(.set(value), for: member)
      guard change == .set(value) else { return false }
      try context.core.checkHolds(
        change,
        of: member,
        from: origin,
        at: now
      )
      return true
    } catch {
      return false
    }
  }

  /// The messages that a requested change would be sent in.
  ///
  /// - Throws: Why the change would be rejected.
  func messages(for request: ControlRequest) throws(ValidationError) -> [MessagePreview] {
    let registry = context.registry
    let origin = ChangeOrigin(source: request.source ?? "socket")
    if let members = request.deviceMembers {
      let device = try registry.deviceIndex(of: request.key)
      let set = DeviceSet(device: device, members: members, written: request.written)
      let changes = try set.changes(in: registry)
      try context.core.checkHolds(
        changes.values,
        from: origin,
        at: now
      )
      return messages(changes.values, options: changes.options, from: origin)
    }
    if request.operation == .scene {
      let values = try registry.scene(request.key).values(in: registry)
      return messages(context.core.carried(values, at: now), from: origin)
    }
    let key = try registry.index(of: request.key)
    let change = try request.change(of: key, in: registry)
    guard let value = try context.core.value(after: change, of: key) else {
      throw .noBase
    }
    try context.core.checkHolds(
      .set(value),
      of: key,
      from: origin,
      at: now
    )
    return messages([(key, value)], from: origin)
  }
}

extension ControlRequest {
  /// The change of one property that this requests.
  ///
  /// - Throws: Why the property does not allow it.
  func change(of key: KeyIndex, in registry: Registry) throws(ValidationError) -> ValueChange {
    switch operation {
    case .set(let value): .set(try registry.value(from: value, written: written, of: key))
    case .step(let amount):
      .step(try amount.number(for: registry.definition(of: key).property.kind))
    case .toggle: .toggle
    case .scene, .cancel, .flush, .get, .pending, .watch, .describe, .record, .reload, .status,
      .log, .devices:
      preconditionFailure("Only a change of one property has a value.")
    }
  }
}
