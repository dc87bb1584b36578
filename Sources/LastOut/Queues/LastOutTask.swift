// Settle
// SPDX-License-Identifier: Apache-2.0

/// A closure that waits in a ``LastOutQueue``.
@frozen
public struct LastOutTask: Sendable {
  @usableFromInline typealias Operation = @Sendable @isolated(any) () async throws -> Void

  /// The kinds of closures.
  @usableFromInline
  @frozen
  enum Body: Sendable {
    case plain(@Sendable () throws -> Void)
    case main(@Sendable @MainActor () throws -> Void)
    case asynchronous(Operation)
    case carried(CarriedOperation)
  }

  @usableFromInline var body: Body
  /// The result of its enqueue.
  @usableFromInline var run: LastOutRun

  @inlinable
  init(body: Body, run: LastOutRun) {
    self.body = body
    self.run = run
  }

  /// Whether no caller has the run, so that a newer task can use it.
  @inlinable
  mutating func isUnheld() -> Bool { isKnownUniquelyReferenced(&run) }
}
