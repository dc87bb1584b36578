// Settle
// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

private import Synchronization

/// The runs that are on the stack of the calling thread, and whether the innermost outlives its
/// call.
///
/// A mark is on the stack of the thread that runs a value; thread-local storage points at the
/// innermost one.
@usableFromInline
@safe package struct RunMark {
  private let engine: any ServedEngine
  private let key: KeyIndex
  private let outer: UnsafeMutablePointer<RunMark>?
  /// Whether the run outlives the call that started it.
  private var isOpen = false
  private var awaited: Awaited

  private init(
    engine: any ServedEngine,
    key: KeyIndex,
    awaited: Awaited,
    outer: UnsafeMutablePointer<RunMark>?
  ) {
    self.engine = engine
    self.key = key
    self.awaited = awaited
    unsafe self.outer = outer
  }

  private static let storage: pthread_key_t = {
    var key = pthread_key_t()
    let failure = unsafe pthread_key_create(&key, nil)
    precondition(failure == 0, "Thread-local storage cannot be created: error \(failure).")
    return key
  }()

  private static var innermost: UnsafeMutablePointer<RunMark>? {
    unsafe pthread_getspecific(storage)?.assumingMemoryBound(to: RunMark.self)
  }

  /// Calls `body` as a run of `key`; returns whether the run outlives the call.
  @usableFromInline
  static func during(
    _ engine: any ServedEngine,
    _ key: KeyIndex,
    awaited: inout Awaited,
    _ body: () -> Void
  ) -> Bool {
    let outer = unsafe innermost
    var mark = unsafe RunMark(engine: engine, key: key, awaited: awaited, outer: outer)
    unsafe withUnsafeMutablePointer(to: &mark) { mark in
      unsafe pthread_setspecific(storage, mark)
      body()
      unsafe pthread_setspecific(storage, outer)
    }
    awaited = mark.awaited
    return mark.isOpen
  }

  /// Makes the current run outlive its call; the result ends it.
  package static func detach() -> RunEnd {
    let mark = unsafe open()
    return unsafe RunEnd(engine: mark.pointee.engine, key: mark.pointee.key)
  }

  /// Makes the current run a task; a flush that started the run waits for the task.
  static func beginTask(_ needs: TaskNeeds) -> (RunEnd, TaskPlan) {
    let mark = unsafe open()
    let end = unsafe RunEnd(engine: mark.pointee.engine, key: mark.pointee.key)
    var awaited = unsafe mark.pointee.awaited
    let plan = end.engine.beginTask(of: end.key, needs, awaited: &awaited)
    unsafe mark.pointee.awaited = awaited
    return (end, plan)
  }

  private static func open() -> UnsafeMutablePointer<RunMark> {
    guard let mark = unsafe innermost else {
      preconditionFailure("Only a run can be detached, from the thread that it started on.")
    }
    unsafe mark.pointee.isOpen = true
    return unsafe mark
  }

  /// Whether this thread or task is inside a run of `engine`.
  @usableFromInline
  static func isInside(_ engine: any ServedEngine) -> Bool {
    var mark = unsafe innermost
    while let found = unsafe mark {
      if unsafe found.pointee.engine === engine { return true }
      unsafe mark = found.pointee.outer
    }
    return AsyncRunMark.all.contains { $0.engine === engine }
  }

  /// The runs that this thread and task are inside.
  static var runs: [WaitNode] {
    var nodes = AsyncRunMark.all.map { WaitNode.run(ObjectIdentifier($0.engine), $0.key) }
    var mark = unsafe innermost
    while let found = unsafe mark {
      unsafe nodes.append(.run(ObjectIdentifier(found.pointee.engine), found.pointee.key))
      unsafe mark = found.pointee.outer
    }
    return nodes
  }
}

/// Ends a run that outlived the call that started it.
package struct RunEnd: Sendable {
  let engine: any ServedEngine
  let key: KeyIndex

  /// Ends the run, so that the key's next value can run; call it once.
  package func callAsFunction() { engine.end(key) }
}

/// A ``RunMark`` for a run that is a task.
final class AsyncRunMark: Sendable {
  @TaskLocal private static var innermost: AsyncRunMark?

  let engine: any ServedEngine
  let key: KeyIndex
  private let outer: AsyncRunMark?
  /// Whether the run has ended; tasks that it started are then no longer inside it.
  private let hasEnded = Atomic(false)

  private init(_ run: RunEnd) {
    engine = run.engine
    key = run.key
    outer = Self.innermost
  }

  static func during(_ run: RunEnd, _ body: () async -> Void) async {
    let mark = AsyncRunMark(run)
    await $innermost.withValue(mark) { await body() }
    mark.hasEnded.store(true, ordering: .releasing)
  }

  /// The runs that the calling task is inside, the innermost first.
  static var all: [AsyncRunMark] {
    var marks: [AsyncRunMark] = []
    var mark = innermost
    while let found = mark {
      if !found.hasEnded.load(ordering: .acquiring) { marks.append(found) }
      mark = found.outer
    }
    return marks
  }
}
