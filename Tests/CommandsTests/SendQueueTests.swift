// Settle
// SPDX-License-Identifier: Apache-2.0

import Values
import Devices
import JSON
import LastOut
import Testing

@testable import Commands

@Suite struct SendQueueTests {
  /// A connected queue for one device with the given properties.
  private func queue(
    _ properties: Property...,
    isConnected: Bool = true,
    merges: Bool = false
  ) -> SendQueue {
    var device = Device.of("d", properties)
    device.merge = merges
    let registry = Registry([device])
    let relations = Relations.all(in: registry)
    let facts = PropertyFacts.all(in: registry, relations)
    var queue = SendQueue(registry: registry, facts, relations, limits: [:])
    _ = queue.connectionChanged(isUp: isConnected, at: .zero)
    return queue
  }

  private func next(_ queue: inout SendQueue) -> KeyIndex? {
    queue.next(at: .at(0), ignoresLimits: false)
  }

  @Test func `a command can be sent once it is inserted`() {
    var queue = queue(.level())
    #expect(queue.insert(.of(1), for: .first) == true)
    #expect(next(&queue) == .first)
    #expect(queue.count == 1)
  }

  @Test func `a second command of a key waits for the acknowledgement of the first`() {
    var queue = queue(.level())
    _ = queue.insert(.of(1), for: .first)
    #expect(queue.dequeue([.first], at: .at(0)).map(\.value) == [1])
    _ = queue.insert(.of(2), for: .first)
    #expect(next(&queue) == nil)
    #expect(queue.waits(.first) == .inFlight)
    queue.acknowledge(.first)
    #expect(next(&queue) == .first)
    #expect(queue.unacknowledgedCount == 0)
  }

  @Test func `a command for an offline device waits until it expires`() {
    var queue = queue(.level(), isConnected: false)
    #expect(queue.insert(.of(1, expiresAt: .at(500)), for: .first) == true)
    #expect(next(&queue) == nil)
    #expect(queue.waits(.first) == .offline)
    #expect(queue.nextExpiry == .at(500))
    #expect(queue.popExpired(at: .at(499)) == nil)
    #expect(queue.popExpired(at: .at(500)) == .first)
  }

  @Test func `time does not run against a command whose device is online`() {
    var queue = queue(.level(), isConnected: false)
    _ = queue.insert(.of(1, expiresAt: .at(500)), for: .first)
    #expect(queue.connectionChanged(isUp: true, at: .zero) == [])
    #expect(queue.nextExpiry == nil)
  }

  @Test func `a momentary command cannot wait for an offline device`() {
    let button = Property.word("button", kind: .action(["PRESS"]))
    var offline = queue(button, isConnected: false)
    #expect(offline.insert(.of(.text("PRESS")), for: .first) == false)
    var online = queue(button)
    #expect(online.insert(.of(.text("PRESS")), for: .first) == true)
    #expect(online.connectionChanged(isUp: false, at: .zero) == [.first])
  }

  @Test func `what returns with its device is in the order of its changes`() {
    var queue = queue(.level("a"), .level("b"))
    _ = queue.availabilityChanged(of: 0, source: 0, isOnline: false)
    _ = queue.insert(.of(1, number: 2), for: .first)
    _ = queue.insert(.of(2, number: 1), for: .second)
    _ = queue.availabilityChanged(of: 0, source: 0, isOnline: true)
    #expect(next(&queue) == .second)
  }

  @Test(arguments: [
    // exceptUrgent, isUrgent, attempt, is sent
    (false, false, 1, false), (false, true, 1, false), (false, true, 2, true),
    (true, false, 1, false), (true, true, 1, true),
  ])
  func `a withheld key sends nothing but what is urgent and excepted or repeated`(
    exceptUrgent: Bool,
    isUrgent: Bool,
    attempt: Int,
    isSent: Bool
  ) {
    var queue = queue(.level())
    var command = Command.of(1)
    command.isUrgent = isUrgent
    command.attempt = attempt
    queue.withhold(.first, exceptUrgent: exceptUrgent)
    _ = queue.insert(command, for: .first)
    #expect((next(&queue) == .first) == isSent)
    queue.release(.first)
    #expect(next(&queue) == .first)
  }

  @Test func `only keys that are neither withheld nor unacknowledged are sent with another`() {
    func member(_ id: String) -> Property {
      .level(id) {
        $0.command = CommandEndpoint(
          topic: "set",
          payload: PayloadTemplate(.object([id: "$value"]))
        )
      }
    }
    var queue = queue(member("a"), member("b"), merges: true)
    #expect(queue.companions(of: .first) == [.first, .second])
    queue.withhold(.second, exceptUrgent: false)
    #expect(queue.companions(of: .first) == [.first])
  }

  @Test func `a removed command leaves nothing behind`() {
    var queue = queue(.level(), isConnected: false)
    _ = queue.insert(.of(1), for: .first)
    #expect(queue.remove(.first)?.value == 1)
    #expect(queue.remove(.first) == nil)
    #expect(queue.count == 0)
    #expect(queue.nextExpiry == nil)
  }
}
