// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import GatewayCore
import LastOut
import Values

/// The rows of replies, as the core and the registry describe a key.

extension TargetRow {
  /// The row of `get`.
  init(_ key: KeyIndex, in core: borrowing GatewayCore, at now: Moment) {
    let status = core.status(key)
    let waiting = core.commandCount(key)
    self.init(
      key: core.registry[key].key,
      target: status.target?.json,
      actual: status.actual?.json,
      phase: status.phase,
      ageMilliseconds: status.since?.milliseconds(to: now),
      waiting: waiting > 1 ? waiting : nil
    )
    isHeard = !core.isUnheard(key)
  }
}

extension PendingRow {
  /// The row of `pending`.
  init(_ status: PendingStatus, in registry: Registry, at now: Moment) {
    self.init(
      key: registry[status.key].key,
      value: status.value.json,
      collapsed: status.collapsed,
      waiting: status.count,
      waits: status.waits,
      dueMilliseconds: status.due.map { now.milliseconds(to: max($0, now)) }
    )
  }
}

extension PropertyRow {
  /// The row of `describe`.
  init(_ key: KeyIndex, in core: borrowing GatewayCore) {
    let registry = core.registry
    let entry = registry[key]
    let device = registry.devices[entry.device]
    let property = entry.property
    self.init(
      key: entry.key,
      deviceName: device.name,
      kind: property.kind,
      policy: PropertyRow.Policy(
        delay: property.policy.delay,
        maxWait: property.policy.maxWait,
        leading: property.policy.leading,
        minInterval: property.policy.minInterval
      )
    )
    name = property.name
    isReadOnly = property.isReadOnly
    confirmWithin = property.confirm?.within
    urgent = property.urgent.map(\.json)
    ends = property.ends.map { other in
      (try? registry.index(of: other, inDevice: entry.device)).map { registry[$0].key }
        ?? "\(device.id)/\(other)"
    }
    isHeard = !core.isUnheard(key)
    unreadable = UnreadableRow(key, in: core)
  }
}

extension UnreadableRow {
  /// What `describe` and `status` say of a key; `nil` where every report could be read.
  init?(_ key: KeyIndex, in core: borrowing GatewayCore) {
    guard let record = core.unreadableReports[key] else { return nil }
    self.init(count: record.count, last: record.excerpt)
  }
}
