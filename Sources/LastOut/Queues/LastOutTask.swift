// Settle
// SPDX-License-Identifier: Apache-2.0

/// A closure that waits in a ``LastOutQueue``.
public struct LastOutTask: Sendable {
  typealias Operation = @Sendable @isolated(any) () async throws -> Void

  /// The three kinds of closure.
  enum Body: Sendable {
    case plain(@Sendable () throws -> Void)
    case main(@Sendable @MainActor () throws -> Void)
    case asynchronous(Operation)
  }

  let body: Body
  /// Identifies the task to the ``LastOutRun`` that its enqueue returned.
  var token: RunToken

  /// Whether no ``LastOutRun`` refers to the task, so that a newer task can use its token.
  mutating func isUnheld() -> Bool { isKnownUniquelyReferenced(&token) }
}
