// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a blocked caller holds, and what a run needs to end.
@usableFromInline
@frozen
package enum WaitNode: Hashable, Sendable {
  /// A run of a key.
  case run(ObjectIdentifier, KeyIndex)
  /// The threads of an executor.
  case executor(ObjectIdentifier)

  /// The main thread.
  static let main = WaitNode.executor(ObjectIdentifier(MainActor.shared))
}

/// The callers that wait for runs while they are inside a run, or hold a thread that a run needs.
///
/// Each wait leads from what its caller holds to what the awaited runs need. A caller whose wait
/// would lead back to itself does not wait for the keys on that way.
enum WaitGraph {
  private struct Wait: Sendable {
    let waiter: Waiter
    let engine: any ServedEngine
    let held: [WaitNode]
  }

  private static let waits = Locked<[Wait]>([])

  /// Adds a wait that holds something; refuses the keys that cannot be awaited.
  static func enter(_ waiter: Waiter, of engine: any ServedEngine, holding held: [WaitNode]) {
    guard !held.isEmpty else { return }
    waits.withLock { $0.append(Wait(waiter: waiter, engine: engine, held: held)) }
    refuseCircles()
  }

  static func leave(_ waiter: Waiter) {
    let removed = waits.withLock { waits -> Wait? in
      waits.firstIndex { $0.waiter === waiter }.map { waits.remove(at: $0) }
    }
    withExtendedLifetime(removed) {}
  }

  /// Ends the waits that are part of a circle, the newest first.
  static func refuseCircles() {
    // The lock keeps two new waits from overlooking each other.
    let refusals = waits.withLock { waits -> [(Wait, Set<KeyIndex>)] in
      var needs = waits.map { $0.engine.needs(of: $0.waiter) }
      var refusals: [(Wait, Set<KeyIndex>)] = []
      for place in waits.indices.reversed() {
        let wait = waits[place]
        let keys = needs[place].filter { _, nodes in
          reaches(Set(nodes), wait.held, from: waits, needs)
        }
        guard !keys.isEmpty else { continue }
        for key in keys.keys { needs[place][key] = nil }
        refusals.append((wait, Set(keys.keys)))
      }
      return refusals
    }
    for (wait, keys) in refusals {
      let names = wait.engine.refuse(keys, of: wait.waiter)
      if names.isEmpty { continue }
      StandardError.write(
        "a flush would wait for itself, and does not wait for \(names): "
          + "use drain(), and do not wait for a queue from its own tasks"
      )
    }
  }

  /// Whether one of `nodes`, or what those that hold them wait for, is in `held`.
  private static func reaches(
    _ nodes: Set<WaitNode>,
    _ held: [WaitNode],
    from waits: [Wait],
    _ needs: [[KeyIndex: [WaitNode]]]
  ) -> Bool {
    var reached = nodes
    var isGrowing = true
    while isGrowing {
      if held.contains(where: reached.contains) { return true }
      let count = reached.count
      for (wait, needs) in zip(waits, needs) where wait.held.contains(where: reached.contains) {
        for nodes in needs.values { reached.formUnion(nodes) }
      }
      isGrowing = reached.count > count
    }
    return false
  }
}

/// Work for a thread of a pool.
@usableFromInline
package protocol PoolWork: AnyObject, Sendable {
  /// Runs what was assigned, on the calling thread.
  func work()
}

/// An engine as timekeepers, runs and waits see it, independent of its keys and values.
@usableFromInline
package protocol ServedEngine: PoolWork {
  /// The earliest time at which ``service()`` has work; `nil` for never.
  var nextDeadline: Moment? { get }

  /// Starts due values; returns when to call again.
  func service() -> Moment?

  /// Ends a run of `key` that outlived the call that started it.
  func end(_ key: KeyIndex)

  /// Records that the run of `key` becomes a task.
  func beginTask(
    of key: KeyIndex,
    _ needs: TaskNeeds,
    awaited: inout Awaited
  ) -> TaskPlan

  /// Passes the engine the task of the run of `key`, to cancel it.
  func own(_ task: Task<Void, Never>, of key: KeyIndex, number: Int)

  /// What each key that a waiter waits for needs to end.
  func needs(of waiter: Waiter) -> [KeyIndex: [WaitNode]]

  /// Makes a waiter not wait for some keys, and returns their names.
  func refuse(_ keys: Set<KeyIndex>, of waiter: Waiter) -> String
}
