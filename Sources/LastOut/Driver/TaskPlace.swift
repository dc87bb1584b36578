// Settle
// SPDX-License-Identifier: Apache-2.0

/// Where the values of an engine run.
@usableFromInline
package enum TaskPlace: Sendable {
  /// On the thread that finds them due, or that adds them; under a clock that is `exact`, none is
  /// ever late.
  case here(exact: Bool)
  /// On threads of the pool, of which the engine occupies so many at most.
  case threads(ThreadPool, limit: Int)
  /// Where a function puts them that returns at once.
  case elsewhere(@Sendable (@escaping @Sendable () -> Void) -> Void)
}
