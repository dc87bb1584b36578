// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import Operations
import Synchronization
import TestBroker

/// The devices of the shipped `devices` folder, which obey and answer on MQTT at once.
///
/// Runs on its own thread until it is released.
final class HouseDevices: Sendable {
  private let worker: Worker
  private let thread: WorkerThread

  /// Returns when every device has said that it is there, and its state.
  init(port: Int) throws {
    worker = try Worker(port: port)
    worker.begin()
    thread = try WorkerThread { [worker] in worker.run() }
  }

  deinit {
    worker.isStopping.store(true, ordering: .relaxed)
    thread.join()
  }

  private final class Worker: Sendable {
    let isStopping = Atomic<Bool>(false)
    private let ear: RecordingSubscriber

    private static let online: [(topic: String, payload: String)] = [
      ("zigbee2mqtt/bridge/state", #"{"state":"online"}"#),
      ("heating/boiler/status", "online"), ("tele/porch/LWT", "Online"),
    ]
    /// State topics, and what is there at the start.
    private static let states: [(topic: String, payload: String)] = [
      (
        "zigbee2mqtt/desk_lamp",
        #"{"state":"OFF","brightness":100,"color_temp":250,"color":{"x":0.3,"y":0.3}}"#
      ),
      ("zigbee2mqtt/hall_thermostat", #"{"occupied_heating_setpoint":20,"system_mode":"auto"}"#),
      ("zigbee2mqtt/hall_blind", #"{"position":20}"#),
      ("heating/boiler", #"{"setpoint":19}"#),
      ("stat/porch/RESULT", #"{"POWER":"OFF","Dimmer":10}"#),
    ]

    init(port: Int) throws {
      ear = try RecordingSubscriber(
        port: port,
        filters: ["zigbee2mqtt/+/set", "heating/boiler/set", "cmnd/porch/+"]
      )
    }

    func begin() {
      for message in Self.online { ear.publish(message.topic, message.payload, retain: true) }
      for state in Self.states {
        if state.topic.hasPrefix("zigbee2mqtt/") {
          ear.publish(state.topic + "/availability", #"{"state":"online"}"#, retain: true)
        }
        ear.publish(state.topic, state.payload, retain: true)
      }
    }

    func run() {
      var states: [String: [JSONValue.Member]] = [:]
      for state in Self.states { states[state.topic] = Self.members(state.payload) }
      var done = 0
      while !isStopping.load(ordering: .relaxed) {
        let place = done
        guard ear.waitFor(within: .milliseconds(50), { $0.count > place }) else { continue }
        let order = ear.messages[done]
        done += 1
        let (topic, changes) = Self.reading(order)
        var state = states[topic] ?? []
        for change in changes {
          state.removeAll { $0.name == change.name }
          state.append(change)
        }
        states[topic] = state
        ear.publish(topic, JSONWriter.text(.object(state)), retain: true)
      }
    }

    /// The state topic that an order is about, and what changes in its payload.
    private static func reading(
      _ order: RecordingSubscriber.Message
    ) -> (topic: String, changes: [JSONValue.Member]) {
      let parts = order.topic.split(separator: "/").map(String.init)
      guard parts.first == "cmnd" else {
        return (parts.dropLast().joined(separator: "/"), members(order.text))
      }
      let value = (try? JSONParser.parse(order.text)) ?? .string(order.text)
      let name = parts.last == "POWER" ? "POWER" : parts.last ?? ""
      return ("stat/porch/RESULT", [.init(name, value)])
    }

    private static func members(_ text: String) -> [JSONValue.Member] {
      guard case .object(let members)? = try? JSONParser.parse(text) else { return [] }
      return members
    }
  }
}
