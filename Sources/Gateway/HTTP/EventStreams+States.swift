// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import GatewayCore
import HTTP
import JSON
import LastOut
import Operations

/// Where keys stand, for the streams that show it: a device that is changed by hand, or comes online,
/// has no event.
extension EventStreams {
  /// The target, the actual value or the phase of a key changed.
  func changed(_ key: KeyIndex) {
    guard stateStreamCount > 0 else { return }
    let name = context.registry[key].key
    for stream in streams.values where stream.showsState(of: name) {
      stream.unsentStates?.insert(key)
    }
    hasUnsentEvents = true
  }

  /// A device came online or went offline.
  func availabilityChanged(ofDevice device: Int) {
    guard stateStreamCount > 0 else { return }
    for raw in context.registry.indices(ofDevice: device) { changed(KeyIndex(raw)) }
  }

  /// The connection to the broker was made or ended.
  func brokerConnectionChanged() {
    guard stateStreamCount > 0 else { return }
    for stream in streams.values { stream.unsentStates?.includesBroker = true }
    hasUnsentEvents = true
  }

  /// A reload changed the devices.
  func devicesChanged() {
    guard stateStreamCount > 0 else { return }
    for stream in streams.values { stream.unsentStates?.includesDevices = true }
    hasUnsentEvents = true
  }

  /// Appends what a stream has not sent, at most `room` bytes beyond its first piece.
  func append(_ states: inout UnsentStates, room: Int, to output: inout [UInt8]) {
    if states.includesDevices {
      states.includesDevices = false
      output += EventStreamText.named("devices", JSONWriter.bytes(.object([])))
    }
    if states.includesBroker {
      states.includesBroker = false
      let json = JSONValue.object(["connected": .boolean(context.core.isConnected)])
      output += EventStreamText.named("broker", JSONWriter.bytes(json))
    }
    let now = EventLoop.now()
    while output.count < room, let key = states.popFirst() {
      // A reload has removed the key meanwhile.
      guard !context.registry[key].isRetired else { continue }
      let row = JSONValue.object(documents.stateMembers(key, at: now))
      output += EventStreamText.named("state", JSONWriter.bytes(row))
    }
  }
}
