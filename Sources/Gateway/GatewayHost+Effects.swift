// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import GatewayCore
import Journal
import LastOut
import Operations
import Values

/// Performing what the core decided.
extension GatewayHost {
  func perform(_ effect: Effect, at now: Moment) {
    switch effect {
    case .write(let work): store?.submit(work)
    case .readClock: context.core.pipeline.clockRead(SystemClock.read())
    case .publish(let publish): mqtt.publish(publish, at: now)
    case .requestState(let request): mqtt.request(request)
    case .forward(let publish, let broker): mqtt.forward(publish, to: broker)
    case .passOn(let change): passOn(change, at: now)
    case .emit(let event): events.deliver(event, at: now)
    case .record(let change):
      controlSocket?.sendToRecorders(change, key: context.registry[change.key].key)
    case .stateChanged(let key):
      http?.streams.changed(key)
      cluster?.rows.changed(key)
    case .publishState(let item, let payload, let place):
      if !mqtt.publishState(item, payload) { context.core.states.putBack(place) }
    case .definitionsReplaced: reloads.replaceDefinitions()
    case .reloaded: reloads.coreFinished()
    case .storeHealth(let fault):
      let store = cluster == nil ? "Journal" : "Cluster's engine"
      Notify.status(fault.map { "\(store) degraded: \($0)" } ?? "Running")
      mqtt.publishStatus()
    case .resumed(let value):
      context.log.debug(
        "Journalled value resumed",
        ["key": context.registry[value.key].key, "value": Excerpt.of(value.value.json)]
      )
    case .log(let entry): context.log.log(entry.level.logLevel, entry.message, entry.fields)
    case .closeStore: store?.beginClosing()
    case .sayOffline: mqtt.publishOffline()
    case .end(let report): end(report)
    }
  }
}

extension LogEntry.Level {
  fileprivate var logLevel: Logger.Level {
    switch self {
    case .info: .info
    case .warning: .warning
    case .error: .error
    }
  }
}
