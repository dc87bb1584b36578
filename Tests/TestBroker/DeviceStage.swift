// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut
internal import Operations
package import Simulation

/// Simulated devices on a scenario's broker, in real time, advanced by the waiting test.
package final class DeviceStage {
  private struct Actor {
    var device: any SimulatedDevice
    var isUp = false
    var isDeaf = false
  }

  private let witness: RecordingSubscriber
  private var actors: [String: Actor] = [:]
  /// How many of the messages the devices have heard.
  private var heard = 0

  package init(_ witness: RecordingSubscriber) { self.witness = witness }

  /// Puts a device there; it is down.
  package func add(_ device: any SimulatedDevice, as name: String) {
    actors[name] = Actor(device: device)
  }

  /// The device comes up and says so; a broker that takes all of it has it before what follows.
  package func comeUp(_ name: String) {
    let messages = actors[name]?.device.start(at: EventLoop.now())
    actors[name]?.isUp = true
    publish(messages ?? [])
  }

  /// The device is lost: its will is published, and it hears nothing more.
  package func lose(_ name: String) {
    moveOn()
    actors[name]?.isUp = false
    publish(actors[name]?.device.will ?? [])
  }

  /// The device goes on, and takes no command any more.
  package func deafen(_ name: String) { actors[name]?.isDeaf = true }

  /// Lets the devices live until what was heard satisfies `condition`; `false` if it does not in
  /// time.
  package func waitFor(
    within limit: Duration = .patience,
    _ condition: ([RecordingSubscriber.Message]) -> Bool
  ) -> Bool {
    var wait = Wait(within: limit)
    while true {
      if condition(moveOn()) { return true }
      guard let left = wait.remaining(heard) else { return false }
      let now = EventLoop.now()
      let end = now.advanced(by: left)
      let wake = actors.values.filter(\.isUp).compactMap(\.device.nextWake).min() ?? end
      let known = heard
      _ = witness.waitFor(within: now.duration(to: max(now, min(wake, end)))) {
        $0.count > known
      }
    }
  }

  /// Hands the devices what came for them, and lets them do what is due.
  @discardableResult
  private func moveOn() -> [RecordingSubscriber.Message] {
    let messages = witness.messages
    for message in messages[heard...] where !message.retained {
      for name in actors.keys.sorted() { hand(message, to: name) }
    }
    heard = messages.count
    for name in actors.keys.sorted() where actors[name]?.isUp == true {
      let now = EventLoop.now()
      while let due = actors[name]?.device.nextWake, due <= now {
        publish(actors[name]?.device.wake(at: now) ?? [])
      }
    }
    return messages
  }

  private func hand(_ message: RecordingSubscriber.Message, to name: String) {
    guard let actor = actors[name], actor.isUp, !actor.isDeaf,
      actor.device.listens(to: message.topic)
    else { return }
    let command = DeviceMessage(topic: message.topic, payload: message.payload)
    publish(actors[name]?.device.receive(command, at: EventLoop.now()) ?? [])
  }

  private func publish(_ messages: [DeviceMessage]) {
    for message in messages {
      witness.publish(message.topic, message.payload, retain: message.retain)
    }
  }
}
