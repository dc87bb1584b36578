// Settle
// SPDX-License-Identifier: Apache-2.0

private import Dispatch
private import Glibc

/// Real time: one thread that waits for an engine's next deadline, and a pool for its tasks.
///
/// The thread starts with the first wake-up and then blocks until there is something to do; without
/// anything pending it sleeps for good. It ends with its engine. The clock is `CLOCK_MONOTONIC`,
/// which stands still while the machine is suspended.
final class DriverThread: Timekeeper {
  private struct State: ~Copyable {
    weak var engine: QueueEngine?
    var hasStarted = false
  }

  private let state = Locked(State())
  private let bell = Bell()
  private let pool = DispatchQueue(label: "LastOut.tasks", attributes: .concurrent)

  var now: Moment { Bell.now }

  func attach(_ engine: QueueEngine) {
    state.withLock { $0.engine = engine }
  }

  func wake(at deadline: Moment) {
    let isFirst = state.withLock { state in
      defer { state.hasStarted = true }
      return !state.hasStarted
    }
    if isFirst { start() } else { bell.ring() }
  }

  func perform(_ task: @escaping @Sendable () -> Void) {
    pool.async(execute: task)
  }

  func stop() {
    bell.ring()
  }

  // MARK: The thread

  private func start() {
    var thread = pthread_t()
    let failure = unsafe pthread_create(
      &thread,
      nil,
      { context in
        guard let context = unsafe context else { return nil }
        unsafe Unmanaged<DriverThread>.fromOpaque(context).takeRetainedValue().run()
        return nil
      },
      Unmanaged.passRetained(self).toOpaque()
    )
    precondition(failure == 0, "The system has no thread left for a queue's timer.")
    pthread_detach(thread)
  }

  private func run() {
    // Signals belong to the program's own threads.
    var signals = sigset_t()
    unsafe sigfillset(&signals)
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    Self.sharpenTimer()
    while let next = serve() { bell.wait(until: next) }
  }

  /// What the engine wants next; `nil` when it is gone.
  private func serve() -> Moment?? {
    guard let engine = state.withLock({ $0.engine }) else { return nil }
    return .some(engine.service())
  }

  /// Has the kernel end this thread's waits at once instead of up to 50 µs late.
  ///
  /// Where that is not allowed, the waits stay as they are.
  private static func sharpenTimer() {
    // The link reads "PROCESS/task/THREAD"; the setting is in the thread's own folder.
    var link = [CChar](repeating: 0, count: 64)
    let length = unsafe readlink("/proc/thread-self", &link, link.count)
    guard length > 0, let slash = link.lastIndex(of: CChar(UInt8(ascii: "/"))) else { return }
    let thread = String(
      decoding: link[(slash + 1)..<length].map(UInt8.init(bitPattern:)),
      as: UTF8.self
    )
    let file = unsafe open("/proc/\(thread)/timerslack_ns", O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return }
    _ = unsafe write(file, "1", 1)
    close(file)
  }
}
