// Settle
// SPDX-License-Identifier: Apache-2.0

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
