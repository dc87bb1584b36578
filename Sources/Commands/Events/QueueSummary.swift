// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
import Values

/// How many values wait, and what for.
package struct QueueSummary: Sendable {
  /// The commands of one lane.
  package struct Lane: Sendable {
    /// `nil` for devices without a lane.
    package var name: String?
    /// Commands that wait for a token, or for the key's previous command.
    package var waiting = 0
    /// Commands that the broker has not acknowledged.
    package var inFlight = 0
  }

  /// Values that wait for quiet.
  package var quiet = 0
  /// Commands whose broker or device is offline, or not known to be online.
  package var offline = 0
  /// Commands whose device is asleep.
  package var asleep = 0
  /// Commands that the broker has not acknowledged.
  package var inFlight = 0
  /// Commands that the broker has acknowledged and the device has not confirmed.
  package var unconfirmed = 0
  /// The lanes of devices, in the order in which they are first used.
  package var lanes: [Lane] = []
}

extension QueueSummary {
  /// Counts what waits and what is in flight; takes time in proportion to all keys.
  package init(of machine: borrowing CommandStateMachine) {
    var places: [String?: Int] = [:]
    quiet = machine.queue.pendingCount
    let registry = machine.registry
    for device in registry.deviceNumbers {
      let name = registry.lane(ofDevice: device)
      let place = places[name] ?? lanes.count
      if place == lanes.count {
        places[name] = place
        lanes.append(Lane(name: name))
      }
      for number in registry.indices(ofDevice: device) {
        count(KeyIndex(number), in: place, of: machine)
      }
    }
  }

  private mutating func count(
    _ key: KeyIndex,
    in lane: Int,
    of machine: borrowing CommandStateMachine
  ) {
    let waiting = machine.sendQueue.commandCount(key)
    if waiting > 0 {
      switch machine.sendQueue.waits(key) {
      case .offline, .unknown: offline += waiting
      case .asleep: asleep += waiting
      case .quiet, .lane, .inFlight: lanes[lane].waiting += waiting
      }
    }
    if machine.sendQueue.awaitsAcknowledgement(key) {
      inFlight += 1
      lanes[lane].inFlight += 1
    } else if machine.deliveries[key].awaitsConfirmation {
      unconfirmed += 1
    }
  }
}

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
