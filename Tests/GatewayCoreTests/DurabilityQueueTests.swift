// Settle
// SPDX-License-Identifier: Apache-2.0

import GatewayCore
import LastOut
import Testing
import Values

@testable import Commands

@Suite struct DurabilityQueueTests {
  private static func event(
    _ key: Int32,
    _ number: UInt64,
    _ phase: Phase = .accepted
  ) -> CommandEvent {
    CommandEvent(
      key: KeyIndex(key),
      phase: phase,
      value: .number(40),
      collapsed: 0,
      number: number,
      acceptedAt: .zero,
      at: .zero,
      attempt: 1,
      isFinal: false
    )
  }

  @Test func `events leave with their commit, in the order in which they came`() {
    var queue = DurabilityQueue()
    queue.append(Self.event(0, 1), until: 1)
    queue.append(Self.event(1, 2), until: 2)
    queue.append(Self.event(0, 1, .sending))
    queue.append(Self.event(2, 3), until: 3)
    #expect(queue.popAll(through: 0).isEmpty)
    #expect(queue.popAll(through: 2).map(\.number) == [1, 2, 1])
    #expect(queue.count == 1)
    #expect(!queue.contains(KeyIndex(0)))
    #expect(queue.contains(KeyIndex(2)))
    #expect(queue.popAll(through: 9).map(\.number) == [3])
    #expect(queue.count == 0)
  }

  @Test func `what follows a second value of its key waits for that one`() {
    var queue = DurabilityQueue()
    queue.append(Self.event(0, 1), until: 1)
    queue.append(Self.event(0, 2), until: 2)
    queue.append(Self.event(0, 1, .superseded))
    #expect(queue.popAll(through: 1).map(\.phase) == [.accepted])
    #expect(queue.contains(KeyIndex(0)))
    #expect(queue.popAll(through: 2).map(\.phase) == [.accepted, .superseded])
  }

  @Test func `the events of one key are removed from among the others`() {
    var queue = DurabilityQueue()
    for number in 1...200 as ClosedRange<UInt64> {
      queue.append(Self.event(Int32(number % 2), number), until: number)
    }
    let even: [UInt64] = Array(stride(from: 2, through: 200, by: 2))
    #expect(queue.removeAll(of: KeyIndex(0)).map(\.number) == even)
    #expect(queue.removeAll(of: KeyIndex(0)).isEmpty)
    queue.append(Self.event(0, 201), until: 201)
    #expect(queue.popAll(through: 3).map(\.number) == [1, 3])
    #expect(queue.removeAll(of: KeyIndex(0)).map(\.number) == [201])
    #expect(queue.count == 98)
    let odd: [UInt64] = Array(stride(from: 5, through: 199, by: 2))
    #expect(queue.popAll(through: 300).map(\.number) == odd)
  }

  @Test func `removed entries are used again, however long one key waits`() {
    var queue = DurabilityQueue()
    queue.append(Self.event(0, 1), until: 1)
    for number in 2..<10_000 as Range<UInt64> {
      queue.append(Self.event(1, number), until: number)
      _ = queue.removeAll(of: KeyIndex(1))
    }
    #expect(queue.count == 1)
    #expect(queue.entryCount < 200)
    #expect(queue.popAll(through: 1).map(\.number) == [1])
  }
}

extension DurabilityQueue {
  /// Everything that waits for values up to `sequence`.
  fileprivate mutating func popAll(through sequence: UInt64) -> [CommandEvent] {
    var events: [CommandEvent] = []
    while let event = popNext(through: sequence) { events.append(event) }
    return events
  }
}
