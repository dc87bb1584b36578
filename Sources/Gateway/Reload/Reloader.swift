// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Dispatch
import Operations
import Synchronization

/// Reads the configuration again on another thread, so that the event loop continues meanwhile.
///
/// One reload at a time: a request that arrives during one gets the result of the next, since the
/// files may have changed after the first began.
final class Reloader {
  typealias Outcome = Result<PreparedReload, ConfigurationFailure>
  typealias Completion = (Result<ReloadReport, GatewayHost.ReloadRefusal>) -> Void

  /// What the other thread leaves for the loop.
  private final class Mailbox: Sendable {
    let outcome = Mutex<Outcome?>(nil)
  }

  private let read: @Sendable () -> Result<LoadedConfiguration, ConfigurationFailure>
  private let mailbox = Mailbox()
  private var waker: Waker?
  private var isBusy = false
  private let base: () -> PreparedReload.Base
  /// Who waits for the reload in progress, and for the one after it.
  private var waiting: [Completion] = []
  private var waitingForNext: [Completion] = []

  /// - Parameters:
  ///   - loop: Where outcomes are reported.
  ///   - base: What is in use when a reading begins.
  ///   - read: Reads the files; called on another thread.
  ///   - apply: Receives the outcome of a reading; ``finish(_:)`` ends the reload.
  /// - Throws: When the loop cannot be woken from another thread.
  init(
    _ loop: EventLoop,
    continuing base: @escaping () -> PreparedReload.Base,
    reading read: @escaping @Sendable () -> Result<LoadedConfiguration, ConfigurationFailure>,
    applying apply: @escaping (Outcome) -> Void
  ) throws(OperationsError) {
    self.base = base
    self.read = read
    let mailbox = mailbox
    waker = try loop.makeWaker(named: "reload") {
      if let outcome = mailbox.outcome.withLock({ $0.take() }) { apply(outcome) }
    }
  }

  /// Reads; `done` is called on the loop with the result, in the order of asking.
  func reload(_ done: @escaping Completion) {
    waitingForNext.append(done)
    if !isBusy { start() }
  }

  private func start() {
    isBusy = true
    swap(&waiting, &waitingForNext)
    let (read, mailbox, waker, base) = (read, mailbox, waker, base())
    DispatchQueue.global(qos: .utility).async {
      let outcome = read().map { PreparedReload($0, continuing: base) }
      mailbox.outcome.withLock { $0 = outcome }
      waker?.wake()
    }
  }

  /// Ends the reload in progress; the next one begins if somebody asked for it.
  func finish(_ result: Result<ReloadReport, GatewayHost.ReloadRefusal>) {
    var done: [Completion] = []
    swap(&done, &waiting)
    for body in done { body(result) }
    isBusy = false
    if !waitingForNext.isEmpty { start() }
  }
}
