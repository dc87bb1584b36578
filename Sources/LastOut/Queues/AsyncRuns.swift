// Settle
// SPDX-License-Identifier: Apache-2.0

/// Makes a task of the run that the caller is inside of: the run ends with the task.
enum AsyncRuns {
  static func detach(
    owned: OwnedTask = OwnedTask(),
    _ body: @escaping @Sendable () async -> Void
  ) {
    let end = RunMark.detach()
    end.engine.own(owned, for: end.key)
    let task = Task.detached {
      await AsyncRunMark.during(end.engine, body)
      end()
    }
    owned.own(task)
  }
}
