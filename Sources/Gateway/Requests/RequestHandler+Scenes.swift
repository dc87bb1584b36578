// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import GatewayCore
import LastOut
import Values

/// Scenes: values of several devices at one instant.
extension RequestHandler {
  /// Sets the values of the scene that the request names.
  ///
  /// Each value is accepted or rejected for itself, and has an answer of its own.
  func setScene(
    _ request: ControlRequest,
    for requester: any Requester,
    line: Int,
    at now: Moment
  ) {
    let registry = context.registry
    let scene: Scene
    do throws(ValidationError) {
      scene = try registry.scene(request.key)
    } catch {
      let error = suggesting(error, at: now)
      requester.setRejection(error)
      host.emitReady()
      let failure = ErrorReply(.unknownKey, error.description, line: line)
      return requester.send(.failure(failure, id: request.replyID))
    }
    let all = scene.values(in: registry)
    let values = all.filter { context.isHere($0.key) }
    host.passOn(all.filter { !context.isHere($0.key) }, of: request, for: requester, at: now)
    let origin = requester.origin(of: request, parts: all.count)
    for _ in values {
      requester.owesReply()
      if origin.wantsPhases { requester.beginWait() }
    }
    let options = ChangeOptions(origin: origin, ttl: request.ttl, skipsQuiet: request.now)
    context.set(values, options, at: now) { requester.setRejection($0) }
  }
}

extension GatewayContext {
  /// Whether this gateway executes changes of a key: it drives its device, or the key is a group's.
  func isHere(_ key: KeyIndex) -> Bool {
    let device = registry.device(of: key)
    return places?.drives(device: device) ?? true || registry.devices[device].group != nil
  }

  /// Sets the values of a scene; each that is rejected has an event that says so.
  func set(
    _ values: [(key: KeyIndex, value: Value)],
    _ options: ChangeOptions,
    at now: Moment,
    onRejection: (ValidationError) -> Void = { _ in }
  ) {
    for (key, _) in values { counters[registry.device(of: key)].changes += 1 }
    let results = core.changeEach(values, at: now, options)
    for ((key, value), error) in zip(values, results) {
      guard let error else { continue }
      onRejection(error)
      let number = core.reject(key, reason: error.description, at: now, origin: options.origin)
      encoder.keepRejectedValue(value.json, ofEvent: number)
    }
  }
}
