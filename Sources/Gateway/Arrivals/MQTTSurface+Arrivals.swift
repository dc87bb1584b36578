// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import LastOut
import MQTT
import Operations
import Routing
import Values

/// Messages that name new devices.
extension MQTTSurface {
  /// Receives a message that may be the first of its device; `false` where it is none.
  func receiveArrival(_ topic: Span<UInt8>, _ payload: Span<UInt8>) -> Bool {
    let sources = context.arrivals.sources
    guard sources.contains(where: { $0.mayMatch(topic) }) else { return false }
    var refusal: DeviceArrivals.Refusal?
    let outcome = context.arrivals.receive(
      Text.of(topic),
      payload,
      in: context.registry,
      limit: context.configuration.limits.devices,
      refusal: &refusal
    )
    if let refusal {
      context.log.warning(
        refusal.isLimit
          ? "Too many devices: further ones that messages name are ignored"
          : "A message names a device that cannot be",
        ["topic": Excerpt.of(refusal.topic), "reason": refusal.reason]
      )
    }
    return outcome != .nothing
  }

  /// Receives messages that waited for devices that have appeared now, and for no other device.
  func receiveKept(_ messages: [DeviceArrivals.Message], at now: Moment) {
    let registry = context.registry
    let isNew = { [context] in context.arrivals.isNew(registry.id(ofDevice: $0)) }
    for message in messages {
      let roles = topics.roles(of: message.topic.utf8.span).filter { role in
        switch role {
        case .state(let key, _): isNew(registry.device(of: key))
        case .availability(let device, _): isNew(device)
        case .command, .awake, .deviceGet, .status, .marker: false
        }
      }
      guard !roles.isEmpty, !message.payload.isEmpty else { continue }
      let document = StatePayload.read(message.payload.span)
      for role in roles { receiveReport(document, for: role, at: now) }
    }
  }
}
