// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import GatewayCore
import JSON
import LastOut
import Values

/// Changes of several properties of a device at one instant.
extension RequestHandler {
  /// Sets properties of the device that the request names.
  ///
  /// The requester gets one answer for each property, or one rejection for all.
  func set(
    _ members: [JSONValue.Member],
    _ request: ControlRequest,
    for requester: any Requester,
    line: Int,
    at now: Moment
  ) {
    let device: Int
    do throws(ValidationError) {
      device = try context.registry.deviceIndex(of: request.key)
    } catch {
      return reject(request, of: requester, reason: suggesting(error, at: now), at: now)
    }
    let set = DeviceSet(device: device, members: members)
    do throws(ValidationError) {
      let changes = try set.changes(in: context.registry)
      if request.wait == .confirmed, let mute = changes.values.first(where: { !canConfirm($0.key) })
      {
        return cannotConfirm(context.registry[mute.key].key, request, for: requester, line: line)
      }
      let origin = requester.origin(of: request, parts: changes.values.count)
      try context.core.change(
        changes.values,
        at: now,
        ChangeOptions(
          origin: origin,
          ttl: request.ttl,
          members: changes.options.isEmpty ? nil : changes.options,
          skipsQuiet: request.now
        )
      )
      context.counters[device].changes += UInt64(changes.values.count)
      for _ in changes.values {
        requester.owesReply()
        if origin.wantsPhases { requester.beginWait() }
      }
    } catch {
      reject(set, request, for: requester, reason: suggesting(error, at: now), at: now)
    }
  }

  /// Rejects the whole set: each property that it names has an event, and the requester one answer.
  private func reject(
    _ set: DeviceSet,
    _ request: ControlRequest,
    for requester: any Requester,
    reason: ValidationError,
    at now: Moment
  ) {
    let origin = ChangeOrigin(id: request.replyID, source: request.source ?? "socket")
    let isNamed = set.reject(because: reason.description, origin: origin, in: context, at: now)
    let event = answer(to: request, of: requester, reason: reason, at: now)
    if !isNamed { events.deliver(event, ofDevice: set.device) }
  }
}
