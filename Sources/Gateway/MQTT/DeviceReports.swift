// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import GatewayCore
import JSON
import LastOut
import Values

/// Translates what devices report: their states, their availability, and replies to commands.
struct DeviceReports {
  let context: GatewayContext

  /// Receives a message on one of the state topics of a property.
  func receiveState(
    of key: KeyIndex,
    source: Int,
    _ document: JSONValue,
    at now: Moment
  ) {
    let state = context.registry[key].states[source]
    if let reply = state.reply { return receiveReply(reply, document, of: key, at: now) }
    switch state.reading(of: document) {
    case .value(let wire):
      if state.acknowledges { return context.core.acknowledged(key, wire, at: now) }
      context.core.reported(key, wire, source: source, at: now)
    case .unreadable:
      if state.acknowledges { return }
      context.core.reportedUnreadable(key, document, source: source, at: now)
    case .nothing: break
    }
  }

  /// Receives a message on one of the availability topics of a device.
  ///
  /// - Returns: Whether the device came online or went offline.
  func receiveAvailability(
    of device: Int,
    source: Int,
    _ document: JSONValue,
    at now: Moment
  ) -> Bool {
    let availability = context.registry.availability(ofDevice: device)[source]
    guard let isOnline = availability.isOnline(in: document) else { return false }
    return context.core.availability(
      ofDevice: device,
      source: source,
      isOnline: isOnline,
      at: now
    )
  }

  /// Receives a live message on the topic on which a sleeping device reports itself.
  func receiveAwake(of device: Int, _ document: JSONValue, at now: Moment) {
    guard let awake = context.registry.awake(ofDevice: device), awake.isAwake(in: document) else {
      return
    }
    context.awakeSince[device] = now
    context.core.awoke(device: device, at: now)
  }

  private func receiveReply(
    _ reply: ReplySource,
    _ document: JSONValue,
    of key: KeyIndex,
    at now: Moment
  ) {
    guard case .integer(let message)? = reply.id.value(in: document) else { return }
    let problem = reply.error?.value(in: document).map { Excerpt.of(StatePayload.word($0)) }
    context.core.replied(key, to: message, problem: problem, at: now)
  }
}
