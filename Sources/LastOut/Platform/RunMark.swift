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

/// The runs that are on the stack of the calling thread, and whether the innermost outlives its call.
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

  private init(
    engine: any ServedEngine,
    key: KeyIndex,
    outer: UnsafeMutablePointer<RunMark>?
  ) {
    self.engine = engine
    self.key = key
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
    _ body: () -> Void
  ) -> Bool {
    let outer = unsafe innermost
    var mark = unsafe RunMark(engine: engine, key: key, outer: outer)
    unsafe withUnsafeMutablePointer(to: &mark) { mark in
      unsafe pthread_setspecific(storage, mark)
      body()
      unsafe pthread_setspecific(storage, outer)
    }
    return mark.isOpen
  }

  /// Makes the current run outlive its call; the result ends it.
  package static func detach() -> RunEnd {
    guard let mark = unsafe innermost else {
      preconditionFailure("Only a run can be detached, from the thread that it started on.")
    }
    unsafe mark.pointee.isOpen = true
    return unsafe RunEnd(engine: mark.pointee.engine, key: mark.pointee.key)
  }

  /// Whether this thread or task is inside a run of `engine`.
  @usableFromInline
  static func isInside(_ engine: any ServedEngine) -> Bool {
    var mark = unsafe innermost
    while let found = unsafe mark {
      if unsafe found.pointee.engine === engine { return true }
      unsafe mark = found.pointee.outer
    }
    return AsyncRunMark.isInside(engine)
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

  private let engine: any ServedEngine
  private let outer: AsyncRunMark?
  /// Whether the run has ended; tasks that it started are then no longer inside it.
  private let hasEnded = Atomic(false)

  private init(engine: any ServedEngine) {
    self.engine = engine
    outer = Self.innermost
  }

  static func during(_ engine: any ServedEngine, _ body: () async -> Void) async {
    let mark = AsyncRunMark(engine: engine)
    await $innermost.withValue(mark) { await body() }
    mark.hasEnded.store(true, ordering: .releasing)
  }

  static func isInside(_ engine: any ServedEngine) -> Bool {
    var mark = innermost
    while let found = mark {
      if found.engine === engine, !found.hasEnded.load(ordering: .acquiring) { return true }
      mark = found.outer
    }
    return false
  }
}
