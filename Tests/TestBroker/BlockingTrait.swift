// Settle
// SPDX-License-Identifier: Apache-2.0

package import Testing

/// Runs the tests of a suite on threads of their own, a bounded number at a time.
///
/// Swift's concurrency has one thread for each processor, and a test that waits for another process
/// keeps one of them. Suites whose tests wait much have this trait, so that the others go on. Each
/// test has a ``Patience`` of its own.
package struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
  package var isRecursive: Bool { true }

  package func provideScope(
    for test: Test,
    testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await Patience.$current.withValue(Patience()) {
      try await withTaskExecutorPreference(BlockingExecutor.shared) { try await function() }
    }
  }
}

extension Trait where Self == BlockingTrait {
  /// The tests of this suite wait for processes, sockets or time.
  package static var blocking: Self { Self() }
}
