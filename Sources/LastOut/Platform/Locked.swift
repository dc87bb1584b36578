// Settle
// SPDX-License-Identifier: Apache-2.0

/// A value behind a ``Lock``, shared by reference.
@usableFromInline
package final class Locked<State: ~Copyable>: Sendable {
  @usableFromInline let lock: Lock<State>

  @usableFromInline
  package init(_ state: consuming sending State) {
    lock = Lock(state)
  }

  /// Calls `body` with exclusive access to the value.
  @inlinable
  @inline(__always)
  package func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    lock.withLock(body)
  }
}
