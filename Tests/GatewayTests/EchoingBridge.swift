// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import Synchronization
import TestBroker

/// A lamp, and beside it a bridge that turns whatever the lamp reports into a command, a step late:
/// with the value that the lamp reported before.
///
/// Runs on its own thread until it is released.
final class EchoingBridge: Sendable {
  private let worker: Worker
  private let thread: WorkerThread

  /// - Parameters:
  ///   - port: The broker's port.
  ///   - states: The lamp's state topic.
  ///   - commands: Where the bridge publishes its commands.
  ///   - orders: Where the lamp gets its commands.
  ///   - wrap: Makes the payload of a command from a bare value.
  /// - Throws: When there is no broker at `port`, or no thread.
  init(
    port: Int,
    states: String,
    commands: String,
    orders: String,
    wrap: @escaping @Sendable (String) -> String = { $0 }
  ) throws {
    worker = Worker(
      ear: try RecordingSubscriber(port: port, filters: [orders]),
      states: states,
      commands: commands,
      wrap: wrap
    )
    thread = try WorkerThread { [worker] in worker.run() }
  }

  deinit {
    worker.isStopping.store(true, ordering: .relaxed)
    thread.join()
  }

  private final class Worker: Sendable {
    let isStopping = Atomic<Bool>(false)
    private let ear: RecordingSubscriber
    private let states: String
    private let commands: String
    private let wrap: @Sendable (String) -> String

    init(
      ear: RecordingSubscriber,
      states: String,
      commands: String,
      wrap: @escaping @Sendable (String) -> String
    ) {
      self.ear = ear
      self.states = states
      self.commands = commands
      self.wrap = wrap
    }

    func run() {
      var before = "null"
      var done = 0
      while !isStopping.load(ordering: .relaxed) {
        let place = done
        guard ear.waitFor(within: .milliseconds(50), { $0.count > place }) else { continue }
        let order = ear.messages[done].text
        done += 1
        // `{"v":80}` is what the lamp gets and what it shows.
        ear.publish(states, order)
        let value = String(order.drop { $0 != ":" }.dropFirst().dropLast())
        if before != "null" { ear.publish(commands, wrap(before)) }
        before = value
      }
    }
  }
}
