// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// A thread that runs one closure and holds it until it returns.
package final class TestThread: Sendable {
  private let identifier: Mutex<pthread_t>

  /// Starts at once.
  ///
  /// - Throws: ``TestBrokerError`` when the system has no thread left.
  package init(_ body: @escaping @Sendable () -> Void) throws {
    let box = unsafe Unmanaged.passRetained(Body(run: body)).toOpaque()
    var thread = pthread_t()
    let code = unsafe pthread_create(
      &thread,
      nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      },
      box
    )
    identifier = Mutex(thread)
    guard code == 0 else {
      unsafe Unmanaged<Body>.fromOpaque(box).release()
      throw TestBrokerError("pthread_create: \(code)")
    }
  }

  /// Waits until the closure has returned; call it once.
  package func join() {
    pthread_join(identifier.withLock { $0 }, nil)
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(run: @escaping @Sendable () -> Void) { self.run = run }
  }
}
