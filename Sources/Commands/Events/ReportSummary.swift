// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut

/// What is missing of the reports of devices.
package struct ReportSummary: Sendable {
  /// How many devices have never reported a property.
  package private(set) var unheardDevices = 0
  /// Properties that have never been reported, although a command for them was not confirmed.
  package private(set) var missed: [KeyIndex] = []
  /// Properties whose newest report cannot be read.
  package private(set) var unreadable: [KeyIndex] = []

  /// Looks at all keys.
  package init(of machine: borrowing CommandStateMachine) {
    for device in machine.registry.deviceNumbers {
      if machine.isUnheard(device: device) { unheardDevices += 1 }
      for number in machine.registry.indices(ofDevice: device) {
        let key = KeyIndex(number)
        switch machine.deliveries[key].reception {
        case .none, .readable: break
        case .missed: if machine.facts[key].isReported { missed.append(key) }
        case .unreadable: unreadable.append(key)
        }
      }
    }
  }
}
