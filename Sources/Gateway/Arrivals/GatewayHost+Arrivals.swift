// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import GatewayCore
import LastOut
import Operations

/// Devices that messages named: they are added by a reload that reads no file.
extension GatewayHost {
  /// How many messages of new devices one step receives.
  private static let messagesPerStep = 250

  /// Begins to add new devices, unless a reload is in progress.
  func addArrivals() {
    guard context.arrivals.deadline != nil, !context.core.isShuttingDown,
      let reloader, !reloader.isBusy
    else { return }
    let arrivals = context.arrivals.popNew(at: EventLoop.now())
    if !arrivals.isEmpty { reloader.add(arrivals) }
  }

  /// The definitions of a reload count: so do the devices that it adds, and its templates.
  func arrivalsReplaced(by reload: ReloadProgress) {
    let prepared = reload.prepared
    guard let arrivals = prepared.arrivals else {
      return context.arrivals.replaceSources(prepared.sources)
    }
    let devices = DeviceArrivals.devices(arrivals, of: prepared.sources)
    let now = EventLoop.now()
    reload.hasMessages = true
    context.arrivals.added(arrivals, after: reload.startedAt.duration(to: now), at: now)
    context.log.info(
      "Devices appeared",
      ["count": String(devices.count), "first": devices.first?.id ?? "none"]
    )
  }

  /// Receives some of the messages that waited for the devices of a reload; `false` once none is left.
  func receiveKept(_ reload: ReloadProgress) -> Bool {
    guard reload.hasMessages else { return false }
    let messages = context.arrivals.popMessages(Self.messagesPerStep, in: context.registry)
    mqtt.receiveKept(messages, at: EventLoop.now())
    if messages.isEmpty {
      reload.hasMessages = false
      context.arrivals.finish(in: context.registry)
    }
    return !messages.isEmpty
  }
}
