// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Devices
import Dispatch
import Operations
import Synchronization

/// Reads the configuration again on another thread, so that the event loop continues meanwhile.
///
/// One reload at a time: a request that arrives during one gets the result of the next, since the
/// files may have changed after the first began.
final class Reloader {
  typealias Outcome = Result<PreparedReload, ConfigurationFailure>
  typealias Completion = (Result<ReloadReport, ReloadRefusal>) -> Void

  /// What the other thread leaves for the loop.
  private final class Mailbox: Sendable {
    let outcome = Mutex<Outcome?>(nil)
  }

  typealias Reading = @Sendable () -> Result<LoadedConfiguration, ConfigurationFailure>

  /// Reads the files; `nil` where there are none.
  var read: Reading?
  private let mailbox = Mailbox()
  private var waker: Waker?
  /// Reads, compares and frees, one after the other.
  private let queue = DispatchQueue(label: "reload", qos: .utility)
  private(set) var isBusy = false
  private let base: () -> PreparedReload.Base
  /// Who waits for the reload in progress, and for the one after it.
  private var waiting: [Completion] = []
  private var waitingForNext: [Completion] = []

  /// - Parameters:
  ///   - loop: Where outcomes are reported.
  ///   - base: What is in use when a reading begins.
  ///   - apply: Receives the outcome of a reading; ``finish(_:)`` ends the reload.
  /// - Throws: When the loop cannot be woken from another thread.
  init(
    _ loop: EventLoop,
    continuing base: @escaping () -> PreparedReload.Base,
    applying apply: @escaping (Outcome) -> Void
  ) throws(OperationsError) {
    self.base = base
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
    guard let read else { preconditionFailure("Nothing is read where there are no files.") }
    swap(&waiting, &waitingForNext)
    prepare { base in read().map { PreparedReload($0, continuing: base) } }
  }

  /// Adds devices that messages named, and reads nothing.
  ///
  /// Call it while no reload is in progress.
  func add(_ arrivals: [DeviceArrivals.Arrival]) {
    prepare { base in .success(PreparedReload(adding: arrivals, to: base)) }
  }

  private func prepare(_ job: @escaping @Sendable (PreparedReload.Base) -> Outcome) {
    isBusy = true
    let (mailbox, waker, base) = (mailbox, waker, base())
    queue.async {
      let outcome = job(base)
      mailbox.outcome.withLock { $0 = outcome }
      waker?.wake()
    }
  }

  /// Frees the definitions from before a reload, so that the event loop does not.
  func free(_ old: Registry) {
    queue.async { withExtendedLifetime(old) {} }
  }

  /// Ends the reload in progress; the next one begins if somebody asked for it.
  func finish(_ result: Result<ReloadReport, ReloadRefusal>) {
    var done: [Completion] = []
    swap(&done, &waiting)
    for body in done { body(result) }
    isBusy = false
    if !waitingForNext.isEmpty { start() }
  }
}
