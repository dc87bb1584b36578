// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Synchronization
import Testing

/// Sequences whose elements settle.
@Suite struct SettledSequenceTests {
  private struct Change: Sendable, Equatable {
    let id: String
    let value: Int
  }

  private struct Broken: Error {}

  private let clock = LastOutTestClock()

  private func change(_ id: String, _ value: Int) -> Change { Change(id: id, value: value) }

  @Test func `the last element of each key's burst is delivered when it has been quiet`() async {
    let source = SteppedSequence<Change>()
    let policy = Policy(delay: .milliseconds(100))
    var iterator = source.settled(by: policy, keyedBy: \.id, clock: clock).makeAsyncIterator()
    for element in [change("a", 1), change("b", 5), change("a", 2)] { await source.send(element) }
    clock.advance(by: .milliseconds(100))
    var delivered = [await iterator.next(), await iterator.next()].compactMap { $0 }
    await source.finish()
    while let element = await iterator.next() { delivered.append(element) }
    #expect(Set(delivered.map { "\($0.id)\($0.value)" }) == ["a2", "b5"])
    #expect(delivered.count == 2)
  }

  @Test func `the end of the sequence delivers pending elements`() async {
    let changes = AsyncStream { continuation in
      for value in 1...5 { continuation.yield(value) }
      continuation.finish()
    }
    var delivered: [Int] = []
    for await value in changes.settled(by: Policy(delay: .seconds(3600))) {
      delivered.append(value)
    }
    #expect(delivered == [5])
  }

  @Test func `an error follows pending elements`() async {
    let changes = AsyncThrowingStream<Int, any Error> { continuation in
      for value in 1...5 { continuation.yield(value) }
      continuation.finish(throwing: Broken())
    }
    var delivered: [Int] = []
    await #expect(throws: Broken.self) {
      for try await value in changes.settled(by: Policy(delay: .seconds(3600))) {
        delivered.append(value)
      }
    }
    #expect(delivered == [5])
  }

  @Test func `a leading element is delivered at once, and the last one is not lost`() async {
    let source = SteppedSequence<Int>()
    var iterator = source.settled(by: .live, clock: clock).makeAsyncIterator()
    await source.send(1)
    #expect(await iterator.next() == 1)
    await source.send(2)
    await source.send(3)
    await source.finish()
    #expect(await iterator.next() == 3)
    #expect(await iterator.next() == nil)
    #expect(await iterator.next() == nil)
  }

  @Test func `maxWait delivers while changes keep coming`() async {
    let source = SteppedSequence<Int>()
    let policy = Policy(delay: .milliseconds(100), maxWait: .milliseconds(200))
    var iterator = source.settled(by: policy, clock: clock).makeAsyncIterator()
    for number in 1...3 {
      await source.send(number)
      clock.advance(by: .milliseconds(80))
    }
    #expect(await iterator.next() == 3)
    await source.finish()
    #expect(await iterator.next() == nil)
  }

  @Test func `a slow consumer receives the newest element of each key`() async {
    let source = SteppedSequence<Int>()
    let policy = Policy(delay: .milliseconds(10))
    var iterator = source.settled(by: policy, clock: clock).makeAsyncIterator()
    for number in 1...5 {
      await source.send(number)
      clock.advance(by: .milliseconds(10))
    }
    await source.finish()
    var delivered: [Int] = []
    while let element = await iterator.next() { delivered.append(element) }
    #expect(delivered == [1, 5])
  }

  @Test func `cancelling the consumer ends the sequence and the reading`() async {
    let ended = Atomic(false)
    let (stream, source) = AsyncStream.makeStream(of: Int.self)
    source.onTermination = { _ in ended.store(true, ordering: .releasing) }
    let consumer = Task {
      var count = 0
      for await _ in stream.settled(by: Policy(delay: .seconds(3600))) { count += 1 }
      return count
    }
    source.yield(1)
    consumer.cancel()
    #expect(await consumer.value == 0)
    while !ended.load(ordering: .acquiring) { await Task.yield() }
  }
}

/// A sequence whose `send` returns when the reader requests the next element.
private struct SteppedSequence<Element: Sendable>: AsyncSequence, Sendable {
  private let elements: AsyncStream<Element>
  private let source: AsyncStream<Element>.Continuation
  private let demands: AsyncStream<Void>
  private let demand: AsyncStream<Void>.Continuation

  init() {
    (elements, source) = AsyncStream.makeStream()
    (demands, demand) = AsyncStream.makeStream()
  }

  struct Iterator: AsyncIteratorProtocol {
    var elements: AsyncStream<Element>.Iterator
    let demand: AsyncStream<Void>.Continuation

    mutating func next() async -> Element? { await next(isolation: nil) }

    mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      demand.yield()
      return await elements.next(isolation: actor)
    }
  }

  func makeAsyncIterator() -> Iterator {
    Iterator(elements: elements.makeAsyncIterator(), demand: demand)
  }

  /// Sends an element, and waits until the reader has handled it.
  func send(_ element: Element) async {
    await awaitDemand()
    source.yield(element)
    await awaitDemand()
    demand.yield()
  }

  func finish() async {
    await awaitDemand()
    source.finish()
  }

  private func awaitDemand() async {
    for await _ in demands { return }
  }
}
