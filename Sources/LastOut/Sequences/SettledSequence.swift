// Settle
// SPDX-License-Identifier: Apache-2.0

/// A sequence that delivers only the last element of each burst of another sequence.
///
/// Each iterator reads the base sequence from its first element. Reading stops when the iterator is
/// released or the consumer's task is cancelled.
public struct SettledSequence<Base: AsyncSequence & Sendable, Key: Hashable & Sendable>:
  AsyncSequence, Sendable
where Base.Element: Sendable {
  /// The element of the base sequence.
  public typealias Element = Base.Element
  /// The error of the base sequence.
  public typealias Failure = Base.Failure

  let base: Base
  let policy: Policy
  let clock: any Clock<Duration>
  let key: @Sendable (Element) -> Key

  /// Creates an iterator, which starts reading at once.
  public func makeAsyncIterator() -> Iterator {
    Iterator(reader: SettledReader(self))
  }

  /// Delivers the settled elements.
  public struct Iterator: AsyncIteratorProtocol {
    let reader: SettledReader<Base, Key>

    /// The next settled element; `nil` at the end.
    public mutating func next() async throws(Failure) -> Element? {
      try await next(isolation: nil)
    }

    /// The next settled element; `nil` at the end.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(Failure) -> Element? {
      try await reader.channel.next().get()
    }
  }
}

/// Reads a sequence into a channel until the iterator is released.
final class SettledReader<Base: AsyncSequence & Sendable, Key: Hashable & Sendable>: Sendable
where Base.Element: Sendable {
  let channel: SettledChannel<Key, Base.Element, Base.Failure>
  private let task: Task<Void, Never>

  init(_ sequence: SettledSequence<Base, Key>) {
    let channel = SettledChannel<Key, Base.Element, Base.Failure>(
      policy: sequence.policy,
      clock: sequence.clock
    )
    self.channel = channel
    task = Task.detached { await Self.read(sequence, into: channel) }
  }

  deinit {
    task.cancel()
    channel.cancel()
  }

  private static func read(
    _ sequence: SettledSequence<Base, Key>,
    into channel: SettledChannel<Key, Base.Element, Base.Failure>
  ) async {
    var iterator = sequence.base.makeAsyncIterator()
    do throws(Base.Failure) {
      while let element = try await iterator.next(isolation: nil) {
        channel.send(element, forKey: sequence.key(element))
      }
      channel.finish(nil)
    } catch {
      channel.finish(error)
    }
  }
}

extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// Returns the last element of each burst, once it has settled by `policy`.
  ///
  /// Elements with different keys settle independently. When this sequence ends, pending elements
  /// are delivered at once, so the last element is never lost; an error follows the pending
  /// elements. A slow consumer receives the newest element of each key, not every one: the number
  /// of waiting elements is bounded by the number of keys.
  ///
  /// ```swift
  /// for try await change in changes.settled(by: .live, keyedBy: \.id) { … }
  /// ```
  ///
  /// - Parameters:
  ///   - policy: When elements settle.
  ///   - key: The key of an element; elements of one key replace each other.
  ///   - clock: The clock; by default the machine's monotonic clock.
  /// - Returns: A sequence of the settled elements.
  public func settled<Key: Hashable & Sendable>(
    by policy: Policy,
    keyedBy key: @escaping @Sendable (Element) -> Key,
    clock: any Clock<Duration> = SuspendingClock()
  ) -> SettledSequence<Self, Key> {
    SettledSequence(base: self, policy: policy, clock: clock, key: key)
  }

  /// Returns the last element of each burst, once it has settled by `policy`.
  ///
  /// When this sequence ends, a pending element is delivered at once.
  ///
  /// - Parameters:
  ///   - policy: When elements settle.
  ///   - clock: The clock; by default the machine's monotonic clock.
  /// - Returns: A sequence of the settled elements.
  public func settled(
    by policy: Policy,
    clock: any Clock<Duration> = SuspendingClock()
  ) -> SettledSequence<Self, Int> {
    SettledSequence(base: self, policy: policy, clock: clock) { _ in 0 }
  }

  /// Returns the last element of each burst; another name for ``settled(by:clock:)`` with
  /// ``Policy/debounce(for:)``.
  ///
  /// Unlike the method of swift-async-algorithms, it also delivers an element that is pending when
  /// the sequence ends.
  public func debounce(
    for interval: Duration,
    clock: any Clock<Duration> = SuspendingClock()
  ) -> SettledSequence<Self, Int> {
    settled(by: .debounce(for: interval), clock: clock)
  }

  /// Returns the first element, then the newest one after each interval; another name for
  /// ``settled(by:clock:)`` with ``Policy/throttle(for:)``.
  ///
  /// Unlike the method of swift-async-algorithms, it always delivers the last element.
  public func throttle(
    for interval: Duration,
    clock: any Clock<Duration> = SuspendingClock()
  ) -> SettledSequence<Self, Int> {
    settled(by: .throttle(for: interval), clock: clock)
  }
}

/// Settles elements between a sequence and its consumer.
///
/// A run lasts until the consumer has received its element. Meanwhile newer elements of its key
/// replace each other, so at most one element per key waits.
final class SettledChannel<Key: Hashable & Sendable, Element: Sendable, Failure: Error>: Sendable {
  private typealias Delivery = Result<Element?, Failure>
  private typealias Consumer = CheckedContinuation<Delivery, Never>

  private struct State: ~Copyable {
    /// Elements that are not received yet, with the ends of their runs, the newest last.
    var arriving: [Settled] = []
    /// The oldest of them, the newest first.
    var leaving: [Settled] = []
    var consumer: Consumer?
    var failure: Failure?
    /// Whether the sequence has ended and pending elements are flushed.
    var hasEnded = false
    /// Whether delivery has stopped.
    var isCancelled = false

    mutating func popFirst() -> Settled? {
      if leaving.isEmpty {
        leaving = arriving.reversed()
        arriving = []
      }
      return leaving.popLast()
    }
  }

  private struct Settled: Sendable {
    let element: Element
    let end: RunEnd
  }

  /// The part that the engine refers to.
  private final class Outlet: Sendable {
    let state = Locked(State())

    func deliver(_ element: Element, end: RunEnd) {
      let consumer = state.withLock { state -> Consumer? in
        let consumer = state.consumer.take()
        if consumer == nil { state.arriving.append(Settled(element: element, end: end)) }
        return consumer
      }
      guard let consumer else { return }
      end()
      consumer.resume(returning: .success(element))
    }
  }

  private let outlet = Outlet()
  private let engine: QueueEngine<Key, Element>

  init(policy: Policy, clock: any Clock<Duration>) {
    engine = QueueEngine(
      policy: policy,
      time: clock.timekeeper(),
      place: .here(exact: clock is any EngineClock)
    ) {
      [outlet] _, run, _ in
      outlet.deliver(run.value, end: RunMark.detach())
    }
  }

  func send(_ element: Element, forKey key: Key) {
    _ = engine.enqueue(element, for: key, delay: nil)
  }

  /// Delivers pending elements, then the end.
  func finish(_ failure: Failure?) {
    _ = engine.flushAll()
    end(with: failure)
  }

  /// Drops pending elements and ends.
  func cancel() {
    _ = engine.cancelAll()
    let consumer = outlet.state.withLock { state in
      state.isCancelled = true
      return state.consumer.take()
    }
    while let element = outlet.state.withLock({ $0.popFirst() }) { element.end() }
    consumer?.resume(returning: .success(nil))
  }

  private func end(with failure: Failure?) {
    let consumer = outlet.state.withLock { state in
      state.hasEnded = true
      // A run that the driver has started delivers its element before the end.
      guard engine.isIdle, let consumer = state.consumer.take() else {
        state.failure = failure
        return Consumer?.none
      }
      return consumer
    }
    consumer?.resume(returning: failure.map { .failure($0) } ?? .success(nil))
  }

  /// The next element, the failure or the end.
  func next() async -> Result<Element?, Failure> {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (delivery, end) = outlet.state.withLock { state -> (Delivery?, RunEnd?) in
          if state.isCancelled { return (.success(nil), nil) }
          if let next = state.popFirst() { return (.success(next.element), next.end) }
          guard state.hasEnded, engine.isIdle else {
            state.consumer = continuation
            return (nil, nil)
          }
          return (state.failure.take().map { .failure($0) } ?? .success(nil), nil)
        }
        // The run ends first: the element behind it must be available before the consumer asks.
        end?()
        if let delivery { continuation.resume(returning: delivery) }
      }
    } onCancel: {
      cancel()
    }
  }
}
