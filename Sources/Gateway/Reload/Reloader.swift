// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import Dispatch
import Operations
import Synchronization

/// Reads the configuration again on another thread, so that the event loop continues meanwhile.
///
/// One reading at a time: a request that arrives during one gets the outcome of the next, since the
/// files may have changed after the first began.
final class Reloader {
  /// Settings and devices; their keys are numbered on from those that there were.
  typealias Outcome = Result<LoadedConfiguration, ConfigurationFailure>

  /// What the other thread leaves for the loop.
  private final class Letterbox: Sendable {
    let outcome = Mutex<Outcome?>(nil)
  }

  private let read: @Sendable () -> Outcome
  private let letterbox = Letterbox()
  private var waker: Waker?
  private var isReading = false
  /// The registry that the next reading continues.
  private let registry: () -> Registry
  /// Who waits for the reading under way, and for the one after it.
  private var asking: [(Outcome) -> Void] = []
  private var askingNext: [(Outcome) -> Void] = []

  /// - Parameters:
  ///   - loop: Where outcomes are told.
  ///   - registry: What there is when a reading begins.
  ///   - read: Reads the files; called on another thread.
  /// - Throws: When the loop cannot be woken from another thread.
  init(
    _ loop: EventLoop,
    continuing registry: @escaping () -> Registry,
    reading read: @escaping @Sendable () -> Outcome
  ) throws(OperationsError) {
    self.registry = registry
    self.read = read
    waker = try loop.makeWaker(named: "reload") { [weak self] in self?.finish() }
  }

  /// Reads; `done` is called on the loop with the outcome, in the order of asking.
  func reload(_ done: @escaping (Outcome) -> Void) {
    askingNext.append(done)
    if !isReading { start() }
  }

  private func start() {
    isReading = true
    swap(&asking, &askingNext)
    let (read, letterbox, waker, old) = (read, letterbox, waker, registry())
    DispatchQueue.global(qos: .utility).async {
      let outcome = read().map { loaded in
        var loaded = loaded
        let devices = loaded.registry.deviceNumbers.map { loaded.registry.devices[$0] }
        loaded.registry = Registry(devices, continuing: old)
        return loaded
      }
      letterbox.outcome.withLock { $0 = outcome }
      waker?.wake()
    }
  }

  private func finish() {
    guard let outcome = letterbox.outcome.withLock({ $0.take() }) else { return }
    var done: [(Outcome) -> Void] = []
    swap(&done, &asking)
    for body in done { body(outcome) }
    isReading = false
    if !askingNext.isEmpty { start() }
  }
}
