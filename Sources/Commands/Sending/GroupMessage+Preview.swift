// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Values

/// What would be sent in one message, without sending it.
extension GroupMessage {
  /// The message that values of a group's keys would be sent in if they were accepted and settled
  /// now; `nil` if `group` would be sent one by one.
  ///
  /// `allows` says whether a member accepts a value.
  init?(
    previewing group: KeyIndex,
    of values: [(key: KeyIndex, value: Value)],
    in dispatcher: borrowing CommandDispatcher,
    allows: (KeyIndex, Value) -> Bool
  ) {
    guard !dispatcher.registry.definition(of: group).property.command.topic.isEmpty else {
      return nil
    }
    self.init()
    for (key, value) in values {
      let carried = Self.carried(value, of: key, in: dispatcher, allows: allows)
      if let carried, !carried.isEmpty {
        append(key, carried)
      } else if key == group {
        return nil
      }
    }
    guard keys.count > 1 else { return nil }
  }

  /// The members that would need the value; `nil` if one of them must not get it in this message.
  private static func carried(
    _ value: Value,
    of group: KeyIndex,
    in dispatcher: borrowing CommandDispatcher,
    allows: (KeyIndex, Value) -> Bool
  ) -> [KeyIndex]? {
    var carried: [KeyIndex] = []
    for member in dispatcher.registry.groups.members(of: group) {
      guard allows(member, value), !dispatcher.sendQueue.isBlocked(member) else { return nil }
      let isAway =
        !dispatcher.sendQueue.isDeviceOnline(dispatcher.facts[member].device)
        || dispatcher.sendQueue.isAsleep(member)
      if !isAway, !dispatcher.isUnchanged(value, of: member) { carried.append(member) }
    }
    return carried
  }
}
