// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
package import Operations

/// Connects simulated devices to a real broker, in real time.
package final class DeviceDriver {
  /// Called for each message that a device publishes.
  package var onReport: ((DeviceMessage) -> Void)?
  package private(set) var devices: [any SimulatedDevice]

  private let link: DemoLink
  private var timer: LoopTimer?

  package init(
    _ devices: [any SimulatedDevice],
    link: DemoLink,
    loop: EventLoop
  ) throws(OperationsError) {
    self.devices = devices
    self.link = link
    timer = try loop.makeTimer { [weak self] in self?.wake() }
    link.onMessage = { [weak self] in self?.receive($0, $1) }
  }

  /// Whether no device moves or waits for a timer.
  package var isResting: Bool { devices.allSatisfy { $0.nextWake == nil } }

  /// Connects, then starts the devices and calls `onUp`.
  package func start(onUp: @escaping () -> Void) {
    link.onConnected = { [weak self] in
      guard let self else { return }
      let now = EventLoop.now()
      for index in devices.indices { publish(devices[index].start(at: now)) }
      armTimer()
      onUp()
    }
    link.start(subscribing: devices.flatMap(\.subscriptions))
  }

  private func receive(_ topic: String, _ payload: [UInt8]) {
    wake()
    let now = EventLoop.now()
    for index in devices.indices where devices[index].listens(to: topic) {
      publish(devices[index].receive(topic: topic, payload: payload, at: now))
    }
    armTimer()
  }

  private func wake() {
    let now = EventLoop.now()
    for index in devices.indices {
      while let due = devices[index].nextWake, due <= now {
        publish(devices[index].wake(at: now))
      }
    }
    armTimer()
  }

  private func publish(_ messages: [DeviceMessage]) {
    for message in messages {
      link.publish(message.topic, message.payload, retain: message.retain)
      onReport?(message)
    }
  }

  private func armTimer() { timer?.arm(at: devices.compactMap(\.nextWake).min()) }
}
