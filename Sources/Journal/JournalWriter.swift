// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Glibc
import LastOut
import Operations

/// The thread that owns the file: one piece of work in, one result out.
final class JournalWriter: Sendable {
  /// What the thread does next.
  private struct Inbox: Sendable {
    var work: JournalWork?
    var isClosing = false
  }

  /// What it has done.
  private struct Outbox: Sendable {
    var results: [JournalResult] = []
    /// Whether the file is closed and the thread is about to end.
    var isClosed = false
  }

  private let inbox = Locked(Inbox())
  private let outbox = Locked(Outbox())
  /// Rung for each entry in the inbox.
  private let bell = Doorbell()
  private let clock: @Sendable () -> JournalClock
  private let onResult: @Sendable () -> Void

  /// Starts the thread, which owns `store` from then on.
  ///
  /// `onResult` is called on that thread whenever ``dequeueResults()`` or ``isClosed`` has
  /// something new; it must only wake the owner.
  init(
    store: consuming JournalStore,
    clock: @escaping @Sendable () -> JournalClock,
    onResult: @escaping @Sendable () -> Void
  ) throws(JournalFault) {
    self.clock = clock
    self.onResult = onResult
    let job = Job(writer: self, store: store)
    // The thread inherits the mask: signals are for the loop, and a write beyond the file size
    // limit must fail rather than kill.
    var all = sigset_t()
    var before = sigset_t()
    unsafe sigfillset(&all)
    unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    do throws(OperationsError) {
      try WorkerThread { job.run() }.detach()
    } catch {
      throw Files.failure("pthread_create", error.code)
    }
  }

  /// Submits work; call it only after ``dequeueResults()`` has returned the previous result.
  func submit(_ work: JournalWork) {
    inbox.withLock { $0.work = work }
    bell.ring()
  }

  /// Returns the results since the last call.
  func dequeueResults() -> [JournalResult] {
    outbox.withLock { exchange(&$0.results, with: []) }
  }

  /// Ends the thread after its current work; ``isClosed`` becomes true when the file is closed.
  func beginClosing() {
    inbox.withLock { $0.isClosing = true }
    bell.ring()
  }

  var isClosed: Bool { outbox.withLock { $0.isClosed } }

  /// The thread's side.
  @safe private final class Job: @unchecked Sendable {
    // Made before the thread starts, and used by it alone.
    private let writer: JournalWriter
    private var store: JournalStore

    init(writer: JournalWriter, store: consuming JournalStore) {
      self.writer = writer
      self.store = store
    }

    func run() {
      while true {
        writer.bell.wait()
        let next = writer.inbox.withLock { inbox in
          defer { inbox.work = nil }
          return inbox
        }
        if let work = next.work { perform(work) }
        if next.isClosing { break }
      }
      store.close()
      writer.outbox.withLock { $0.isClosed = true }
      writer.onResult()
    }

    private func perform(_ work: JournalWork) {
      let clock = writer.clock()
      do throws(JournalFault) {
        switch work {
        case .commit(let batch):
          try store.write(batch, clock: clock)
          deliver(.done)
          // After the result: copying the log into the file must not delay the replies.
          store.tidy()
        case .rebuild(let entries):
          try store.rebuild(entries, clock: clock)
          deliver(.done)
        case .reopen: deliver(.reopened(try reopen(clock)))
        }
      } catch {
        deliver(.failed(error))
      }
    }

    private func reopen(_ clock: JournalClock) throws(JournalFault) -> JournalContents {
      do throws(JournalProblem) {
        return try store.open(clock: clock)
      } catch {
        throw error.asFault(of: "open")
      }
    }

    private func deliver(_ result: JournalResult) {
      writer.outbox.withLock { $0.results.append(result) }
      writer.onResult()
    }
  }
}
