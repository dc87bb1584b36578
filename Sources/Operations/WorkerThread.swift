// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A thread that runs one closure and holds it until it returns.
///
/// Call ``join()`` or ``detach()``, once.
package struct WorkerThread: Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private let identifier: pthread_t

  /// Starts at once.
  ///
  /// - Throws: When the system has no thread left.
  package init(_ run: @escaping @Sendable () -> Void) throws(OperationsError) {
    let argument = unsafe Unmanaged.passRetained(Body(run)).toOpaque()
    var thread = pthread_t()
    let code = unsafe pthread_create(
      &thread,
      nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      },
      argument
    )
    guard code == 0 else {
      unsafe Unmanaged<Body>.fromOpaque(argument).release()
      throw OperationsError(call: "pthread_create", code: code)
    }
    identifier = thread
  }

  /// Waits until the closure has returned.
  package func join() { pthread_join(identifier, nil) }

  /// Lets the thread end by itself; it also frees what the closure holds.
  package func detach() { pthread_detach(identifier) }
}
