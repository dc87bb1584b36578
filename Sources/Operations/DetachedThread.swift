// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Threads that nobody waits for.
package enum DetachedThread {
  private final class Job: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  /// Runs `run` on a thread of its own, which also frees what it holds.
  ///
  /// - Returns: Whether the system has started the thread.
  package static func start(_ run: @escaping @Sendable () -> Void) -> Bool {
    let argument = unsafe Unmanaged.passRetained(Job(run)).toOpaque()
    var thread = pthread_t()
    let code = unsafe pthread_create(
      &thread,
      nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        unsafe Unmanaged<Job>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      },
      argument
    )
    guard code == 0 else {
      unsafe Unmanaged<Job>.fromOpaque(argument).release()
      return false
    }
    pthread_detach(thread)
    return true
  }
}
