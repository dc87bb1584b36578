// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// A planned event outside the gateway.
enum HouseholdEvent {
  case request(HouseholdRequest)
  /// A message reaches the broker.
  case arrival(HouseholdBroker.Message)
  case acknowledgement(UInt64, generation: Int)
  /// The broker hands a message to a device.
  case delivery(device: Int, HouseholdBroker.Message)
  /// A device reports a property.
  case report(key: Int, JSONValue)
  case retainedReport(key: Int)
  /// A moving device is somewhere.
  case tick(device: Int, String, serial: Int)
  case availability(device: Int, isOnline: Bool)
  case cut(generation: Int)
  case reconnection(generation: Int)
  case power(device: Int, isOn: Bool)
  case hand(key: Int, Value)
  /// The device files are read again; some quiet periods differ.
  case reload
  case crash
}

/// What a person, or an automation, asks of the gateway.
enum HouseholdRequest {
  case change(key: Int, ValueChange, isNow: Bool)
  /// A value that came as a message, as from a bridge that follows the device.
  case message(key: Int, Value)
  /// Several values of one device at one instant.
  case merged([(key: Int, value: Value)], isNow: Bool)
  /// Values of several devices at one instant.
  case scene([(key: Int, value: Value)])
  case cancel(key: Int)
  case flush(key: Int)
}

/// The broker: the gateway's connection, and what it retains.
struct HouseholdBroker {
  struct Message {
    let token: UInt64
    let topic: String
    let payload: [UInt8]
    let keys: [Int]
    let generation: Int
    /// Whether it reaches the broker even if the connection ends meanwhile.
    let survivesCut: Bool
  }

  var isConnected = false
  var generation = 0
  var nextArrival = Moment.zero
  /// The messages without an acknowledgement.
  var outstanding: [Message] = []
  var reports: [JSONValue?] = []
  var isOnline: [Bool] = []

  /// Keeps what the devices are at first.
  mutating func retain(_ registry: Registry, _ devices: [HouseholdDevice], at now: Moment) {
    isOnline = devices.map { _ in true }
    reports = registry.properties.map { entry in
      guard registry.devices[entry.device].group == nil else { return nil }
      let property = entry.property
      return devices[entry.device].value(property.id, at: now).map { property.wireValue(of: $0) }
    }
  }
}

/// What is known of the gateway's commands by their numbers.
struct HouseholdCommands {
  /// Counts people's intents.
  var intents: UInt64 = 0
  /// The intent of each command of this process that has no identifier of its own.
  var resumed: [UInt64: UInt64] = [:]
  /// The command that was sent last for each key.
  var sending: [Int: (intent: UInt64, value: Value, isOfGroup: Bool)] = [:]
  /// Accepted values that the journal may not have yet: not reported as accepted.
  var undurable: [Expectation.Command: UInt64] = [:]
  /// Values that the running request was accepted with.
  var accepted: [(key: Int, value: Value)]?
  /// How many of the undelivered events were handled already.
  var decidedCount = 0
  /// Intents whose values were resumed by a later process.
  var replayed: Set<UInt64> = []
  /// Urgent intents that waited for the disk for as long as they do at most; a crash may replay
  /// what is older.
  var impatient: Set<UInt64> = []
  /// Since when an urgent value of each key waits.
  var urgentSince: [Int: Moment] = [:]
  /// Intents of relative changes, with the values that they may count from.
  var bases: [Expectation.Command: [Value]] = [:]
}
