// Settle
// SPDX-License-Identifier: Apache-2.0

/// Makes a function that runs only the last task it was given, once it was not called for `delay`.
///
/// Each call replaces the pending task, which is freed at once. Tasks run on a concurrent pool and
/// never overlap. Letting go of the function does not stop a task that is pending.
///
/// - Parameter delay: The quiet period; negative counts as zero.
/// - Returns: A function that may be called from any thread.
public func debounce(
  delay: Duration
) -> @Sendable (_ task: @escaping @Sendable () -> Void) -> Void {
  debounce(delay: delay, engine: .shared)
}

package func debounce(
  delay: Duration,
  engine: QueueEngine
) -> @Sendable (_ task: @escaping @Sendable () -> Void) -> Void {
  let lease = KeyLease(engine)
  return { task in lease.enqueue(after: delay, task) }
}
